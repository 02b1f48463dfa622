"""The methods behind Python's operators, called by name: `a.__iadd__(b)` is `a += b`."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.define import composed, no_tangent
from plaingrad.rules.numpy.names import methods
from plaingrad.rules.numpy.shapes import reinterpreted

no_tangent(*methods(
    "__invert__", "__lshift__", "__rlshift__", "__rshift__", "__rrshift__", "__and__", "__rand__", "__xor__", "__rxor__",
    "__or__", "__ror__", "__ilshift__", "__irshift__", "__iand__", "__ixor__", "__ior__", "__len__", "__contains__",
    "__sizeof__", "__array_finalize__", "__array_namespace__", "__dlpack_device__",
))  # fmt: skip


def bare(a: Any) -> Any:
    """`a` as a plain array over the same memory: a subclass calls these methods from its own versions of them."""
    return a if type(a) is np.ndarray or not isinstance(a, np.ndarray) else reinterpreted(a, np.ndarray)


def dressed(z: Any, a: Any) -> Any:
    """The array `z` as an instance of the class of `a`."""
    return z if type(a) is np.ndarray or not isinstance(z, np.ndarray) else reinterpreted(z, type(a))


def in_place_add(self, value):
    """self += value."""
    a = bare(self)
    a += bare(value)
    return self


def in_place_sub(self, value):
    """self -= value."""
    a = bare(self)
    a -= bare(value)
    return self


def in_place_mul(self, value):
    """self *= value."""
    a = bare(self)
    a *= bare(value)
    return self


def in_place_truediv(self, value):
    """self /= value."""
    a = bare(self)
    a /= bare(value)
    return self


def in_place_floordiv(self, value):
    """self //= value."""
    a = bare(self)
    a //= bare(value)
    return self


def in_place_mod(self, value):
    """self %= value."""
    a = bare(self)
    a %= bare(value)
    return self


def in_place_pow(self, value, modulus=None):
    """self **= value; NumPy takes a modulus and leaves it alone."""
    a = bare(self)
    a **= bare(value)
    return self


def in_place_matmul(self, value):
    """self @= value."""
    a = bare(self)
    a @= bare(value)
    return self


for name, definition in (
    ("add", in_place_add), ("sub", in_place_sub), ("mul", in_place_mul), ("truediv", in_place_truediv),
    ("floordiv", in_place_floordiv), ("mod", in_place_mod), ("pow", in_place_pow), ("matmul", in_place_matmul),
):  # fmt: skip
    for f in methods(f"__i{name}__"):
        composed(f, mutates=True)(definition)


@composed(np.ndarray.__matmul__)
def matmul(self, value):
    """self @ value."""
    return dressed(bare(self) @ bare(value), self)


@composed(np.ndarray.__rmatmul__)
def rmatmul(self, value):
    """value @ self."""
    return dressed(bare(value) @ bare(self), self)


@composed(np.ndarray.__getitem__)
def getitem(self, key):
    """self[key]."""
    return dressed(bare(self)[key], self)


@composed(np.ndarray.__setitem__, mutates=True)
def setitem(self, key, value):
    """self[key] = value."""
    a = bare(self)
    a[key] = value


@composed(np.ndarray.__iter__)
def iterate(self):
    """self[0], self[1], ..."""
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    return (self[i] for i in range(len(self)))


@composed(np.ndarray.__array_ufunc__)
def array_ufunc(self, ufunc, method, *inputs, **options):
    """What subclasses of ndarray call by `super()`."""
    return getattr(ufunc, method)(*inputs, **options)


def number_method(name: str, convert: Any) -> None:
    """a.__float__() of an array with one element."""
    for f in methods(name, types=(np.ndarray,)):
        if rulebook.find(f) is None:

            @composed(f)
            def converted(self):
                return convert(self.item())


number_method("__float__", float)
number_method("__complex__", complex)
