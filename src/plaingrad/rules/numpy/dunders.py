"""The methods behind Python's operators, called by name: `a.__iadd__(b)` is `a += b`."""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.define import composed, no_tangent
from plaingrad.rules.numpy.names import methods

no_tangent(*methods(
    "__invert__", "__lshift__", "__rlshift__", "__rshift__", "__rrshift__", "__and__", "__rand__", "__xor__", "__rxor__",
    "__or__", "__ror__", "__ilshift__", "__irshift__", "__iand__", "__ixor__", "__ior__", "__len__", "__contains__",
    "__sizeof__", "__array_finalize__", "__array_namespace__", "__dlpack_device__",
))  # fmt: skip


def in_place_add(self, value):
    """self += value."""
    self += value
    return self


def in_place_sub(self, value):
    """self -= value."""
    self -= value
    return self


def in_place_mul(self, value):
    """self *= value."""
    self *= value
    return self


def in_place_truediv(self, value):
    """self /= value."""
    self /= value
    return self


def in_place_floordiv(self, value):
    """self //= value."""
    self //= value
    return self


def in_place_mod(self, value):
    """self %= value."""
    self %= value
    return self


def in_place_pow(self, value, modulus=None):
    """self **= value; NumPy takes a modulus and leaves it alone."""
    self **= value
    return self


def in_place_matmul(self, value):
    """self @= value."""
    self @= value
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
    return self @ value


@composed(np.ndarray.__rmatmul__)
def rmatmul(self, value):
    """value @ self."""
    return value @ self


@composed(np.ndarray.__getitem__)
def getitem(self, key):
    """self[key]."""
    return self[key]


@composed(np.ndarray.__setitem__, mutates=True)
def setitem(self, key, value):
    """self[key] = value."""
    self[key] = value


@composed(np.ndarray.__iter__)
def iterate(self):
    """self[0], self[1], ..."""
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    return (self[i] for i in range(len(self)))


@composed(np.ndarray.__array_ufunc__)
def array_ufunc(self, ufunc, method, *inputs, **options):
    """What subclasses of ndarray call by `super()`: the ufunc itself, if no other class has a say."""
    out = options.get("out", ())
    for x in (*inputs, *(out if isinstance(out, tuple) else (out,))):
        override = getattr(type(x), "__array_ufunc__", ARRAY_UFUNC)
        if override is not ARRAY_UFUNC:
            return NotImplemented
    return getattr(ufunc, method)(*inputs, **options)


ARRAY_UFUNC = np.ndarray.__array_ufunc__


@composed(np.ndarray.__array_function__)
def array_function(self, func, types, args, kwargs):
    """What subclasses of ndarray call by `super()`: the function as NumPy has it for arrays of any class."""
    for cls in types:
        if not issubclass(cls, np.ndarray):
            return NotImplemented
    return func._implementation(*args, **kwargs)


def number_method(name: str, convert: Any) -> None:
    """a.__float__() of an array with one element."""
    for f in methods(name, types=(np.ndarray,)):
        if rulebook.find(f) is None:

            @composed(f)
            def converted(self):
                return convert(self.item())


number_method("__float__", float)
number_method("__complex__", complex)
