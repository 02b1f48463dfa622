"""Subclasses of ndarray: the result of an operation has the class and attributes that the plain call gives it.

NumPy enters Python code of a subclass in four ways, and so does the engine:

- `__array_ufunc__`, `__array_function__` and overridden methods decide by themselves. They run rewritten, and what they
  do in the end with plain arrays has rules.
- A function of NumPy that is written in Python may call any method of its arguments. Where the class has methods of its
  own, NumPy's function runs rewritten, instead of its rule.
- Everything else computes with the numbers of the array, and makes the result an instance of the class afterwards
  (`__array_wrap__`, `__array_finalize__`). There the rule gets views of the arguments as plain arrays, and its result
  is made an instance in the same way. Which way that is, is found by calling NumPy with *probes*: arrays of a class
  that writes down what NumPy does with it.

The tape holds plain views only. A view as an instance of a subclass lies in the same memory, so it needs no entry.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.class_keys import classes_of, is_among
from plaingrad.engine.memory.kinds import OBJECT, is_heap, kind_of
from plaingrad.engine.refusals.refuse import name_of
from plaingrad.engine.users_code.class_attributes import DESCRIPTORS, lookup
from plaingrad.engine.values.array_classes import (
    BINARY_OPERATORS,
    UNARY_OPERATORS,
    WRAP,
    ArrayFunction,
    arrays_in,
    bare,
    flat,
    has_methods,
    has_overrider,
    has_protocol,
    implementers,
    is_numpys,
    is_subclassed,
    of_mathematics,
    overrides,
    replaced,
    speaks,
)
from plaingrad.engine.values.array_items import GETITEM, read
from plaingrad.engine.values.probes import refuse_class, wrapped
from plaingrad.rewrite import PLAIN, in_force
from plaingrad.rulebook import Rule

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level


def numpys_methods(numpy: dict[str, Any]) -> Any:
    """The module of NumPy with the bodies of methods; 1.26 has a `_core`, too, which is only a way in for C code."""
    core = numpy.get("_core")
    return core._methods if hasattr(core, "_methods") else numpy["core"]._methods


# Methods of ndarray that are Python code of NumPy's, and those of C that call ufuncs as Python does.
BODIES: dict[Any, Any] = {}
for _name, _body in (
    *(("sum", "_sum"), ("prod", "_prod"), ("mean", "_mean"), ("var", "_var"), ("std", "_std")),
    *(
        ("max", "_amax"),
        ("min", "_amin"),
        ("any", "_any"),
        ("all", "_all"),
        ("clip", "_clip"),
        ("ptp", "_ptp"),
    ),
):
    _methods = numpys_methods(vars(np))
    if _name in vars(np.ndarray) and hasattr(_methods, _body):
        BODIES[vars(np.ndarray)[_name]] = getattr(_methods, _body)


def trace_body(
    self: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    """The sum over a diagonal."""
    z = np.add.reduce(np.ndarray.diagonal(self, offset, axis1, axis2), -1, dtype, out)
    return np.ndarray.view(z, np.ndarray)[()] if isinstance(z, np.ndarray) and z.ndim == 0 else z


def cumsum_body(self: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Sums of the first elements."""
    return np.add.accumulate(np.ndarray.ravel(self) if axis is None else self, axis or 0, dtype, out)


def cumprod_body(self: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Products of the first elements."""
    return np.multiply.accumulate(np.ndarray.ravel(self) if axis is None else self, axis or 0, dtype, out)


BODIES |= {
    np.ndarray.trace: trace_body,
    np.ndarray.cumsum: cumsum_body,
    np.ndarray.cumprod: cumprod_body,
}
# Methods whose rule does with an instance of a subclass what the method does.
AS_THEY_ARE = frozenset(
    vars(np.ndarray)[name]
    for name in ("view", "__iter__", "__array_ufunc__", "__array_function__", "__array_finalize__")
)
# Functions and modules of NumPy written in Python that read plain arrays and wrap what they give, whatever methods the
# class has; at the bottom they are C code.
BLOCK_MODULES = ("numpy.linalg", "numpy.fft")
BLOCKS = frozenset(
    (
        *(np.einsum, np.broadcast_to, np.convolve, np.correlate, np.interp),
        np.broadcast_to.__wrapped__.__globals__["_broadcast_to"],  # behind np.broadcast_arrays
    )
)
BY_CLASS = ("__array_wrap__", "__array_ufunc__")
FILL = np.ndarray.fill
ROUND = np.ndarray.round
VECTORIZED = getattr(np.vectorize, "_vectorize_call", None)


def by_protocol(level: Level, f: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """f(*args, **kwargs) as the class of an argument has it; NotImplemented if NumPy asks none."""
    for x in flat((*args, *kwargs.values())):
        t = type(x)
        if not issubclass(t, np.ndarray) and is_heap(t) and speaks(f, t):
            level.calls.meet(x)
            if type(f) is ArrayFunction:
                return by_array_function(level, f, args, kwargs)
            return f(*args, **kwargs)  # C code enters `__array_ufunc__`
        if f is VECTORIZED and is_heap(t) and has_protocol(t):
            refuse_class(f, t)
    if is_among(type(f), DESCRIPTORS) and not isinstance(args[0], (np.ndarray, np.generic, np.ufunc)):
        return f(*args, **kwargs)  # which raises
    return NotImplemented


# -- the decision --------------------------------------------------------------------------------------------


def call(
    level: Level, f: Any, args: Any, kwargs: dict[str, Any], compute: Callable[..., Any], writes: bool = False
) -> Any:
    """f(*args, **kwargs) where arrays of subclasses of ndarray are among the arguments.

    Args:
        level: the level in force.
        f: a function of NumPy.
        args: its arguments.
        kwargs: its keyword arguments.
        compute: does the same by the rule of `f`, for plain arrays.
        writes: `f` may write into its arguments.
    """
    arrays = arrays_in((*args, *kwargs.values()))
    if not arrays:
        z = by_protocol(level, f, args, kwargs)
        return compute(*args, **kwargs) if z is NotImplemented else z
    for a in arrays:
        level.calls.meet(a)
    classes = list(classes_of(arrays))
    if f in AS_THEY_ARE:
        return compute(*args, **kwargs)
    if f is WRAP:
        return f(*args, **kwargs)  # a view
    if f is GETITEM:
        return read(level, *args)
    if type(f) is ArrayFunction:
        if any(overrides(cls, "__array_function__") for cls in classes):
            return by_array_function(level, f, args, kwargs)
    else:
        z = by_own_operator(level, f, args)
        if z is not NotImplemented:
            return z
        if any(overrides(cls, "__array_ufunc__") for cls in classes):
            z = by_array_ufunc(level, f, args, kwargs)
            if z is not NotImplemented:
                return z
    body = BODIES.get(f) if is_among(type(f), DESCRIPTORS) else None
    if body is not None:
        cls = type(args[0])
        into_array = any(isinstance(x, np.ndarray) for x in args[1:])
        if into_array or any(overrides(cls, name) for name in BY_CLASS):
            return level.calls.inside(body)(*args, **kwargs)
    body = getattr(f, "_implementation", None) if type(f) is ArrayFunction else f
    if type(body) is FunctionType and any(map(has_methods, classes)):
        by_block = str(f.__module__).startswith(BLOCK_MODULES)
        if f is not VECTORIZED and f not in BLOCKS and not by_block:
            return level.calls.inside(body)(*args, **kwargs)
        for cls in classes:
            if f is VECTORIZED or (by_block and overrides(cls, "__array_ufunc__")):
                refuse_class(f, cls)
    if f is VECTORIZED:  # never by probes: it calls a function of the program
        return of_plain(args, kwargs, compute, arrays)
    if f is ROUND and overrides(classes[0], "__array_ufunc__"):
        refuse_class(f, classes[0])
    if f is FILL and len(args) == 2 and is_subclassed(args[1]):
        args = (args[0], level.prep(complex if args[0].dtype.kind == "c" else float)(args[1]))
        arrays = arrays_in(args)
    return wrapped(level, f, args, kwargs, compute, arrays, writes)


def of_plain(args: Any, kwargs: dict[str, Any], compute: Callable[..., Any], arrays: list[np.ndarray]) -> Any:
    """compute(*args, **kwargs) of plain views, an array made an instance of the class of the first of `arrays`."""
    plain = {id(a): bare(a) for a in arrays}
    z = compute(*replaced(args, plain), **replaced(kwargs, plain))
    return WRAP(arrays[0], z) if isinstance(z, np.ndarray) else z


PLAIN_CALL = object()  # says that no class has a say


def apply(level: Level, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """f(*args, **kwargs) by its rule, where NumPy asks a class first; `PLAIN_CALL` if that makes no difference."""
    if of_mathematics(f):
        if not any(map(is_subclassed, args)):
            return PLAIN_CALL
        number = level.prep(float)
        return level.apply(rule, f, tuple([number(x) if is_subclassed(x) else x for x in args]), kwargs)
    if not is_numpys(f):
        return PLAIN_CALL
    z = by_protocol(level, f, args, kwargs)
    if z is not NotImplemented:
        return z
    if not arrays_in((*args, *kwargs.values())):
        return PLAIN_CALL
    others = [k for k, x in enumerate(args) if kind_of(type(x)) == OBJECT and is_heap(type(x))]
    if others and rule.kind in ("scalar", "bilinear") and level._is_operand(args[others[0]]):
        return level._apply_to_object(rule, f, args, kwargs, others[0])

    def compute(*plain_args: Any, **plain_kwargs: Any) -> Any:
        return level.apply(rule, f, plain_args, plain_kwargs)

    return call(level, f, args, kwargs, compute)


def by_own_operator(level: Level, f: Any, args: Any) -> Any:
    """a op b, or op a, by a method of the class; NotImplemented if C code decides."""
    if f in BINARY_OPERATORS and len(args) == 2:
        return level._own_operator(BINARY_OPERATORS[f], *args)
    if f in UNARY_OPERATORS:
        method = lookup(type(args[0]), f"__{UNARY_OPERATORS[f]}__")
        if not is_among(type(method), DESCRIPTORS):
            return level._call_own(method, args[0])
    return NotImplemented


def takes(method: Any, a: Any, b: Any) -> bool:
    """Whether a special method of C code, of the left operand, takes the right one and does not leave it the word."""
    if isinstance(a, np.ndarray):
        override = lookup(type(b), "__array_ufunc__")
        if override is not None or isinstance(b, np.ndarray):
            return override is not None
    return in_force(PLAIN, method, a, b) is not NotImplemented


def by_array_ufunc(level: Level, f: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """f(*args, **kwargs) of a ufunc, whose C code enters `__array_ufunc__`; NotImplemented if `f` is no ufunc."""
    if f in BINARY_OPERATORS and len(args) == 2:
        a, b = args
        name = BINARY_OPERATORS[f]
        if isinstance(a, np.ndarray):
            z = getattr(np.ndarray, f"__{name}__")(a, b)
        else:
            z = getattr(np.ndarray, f"__r{name}__")(b, a)
        return z
    if f in UNARY_OPERATORS:
        return getattr(np.ndarray, f"__{UNARY_OPERATORS[f]}__")(*args)
    if type(f) is np.ufunc:
        return f(*args, **kwargs)
    if is_among(type(f), DESCRIPTORS):
        if f.__objclass__ is np.ufunc or type(f) is types.WrapperDescriptorType and f.__name__ in ARITHMETIC:
            return f(*args, **kwargs)
    return NotImplemented


ARITHMETIC = frozenset(
    f"__{prefix}{name}__" for name in BINARY_OPERATORS.values() for prefix in ("", "r", "i")
) | frozenset(f"__{name}__" for name in UNARY_OPERATORS.values())


def by_array_function(level: Level, f: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """f(*args, **kwargs) by the `__array_function__` of the arguments' classes; that of ndarray is one of them."""
    found = implementers(args, kwargs)
    classes = tuple([type(x) for x in found])
    for x in found:
        level.calls.meet(x)
        z = level._call_own(lookup(type(x), "__array_function__"), x, f, classes, args, kwargs)
        if z is not NotImplemented:
            return z
    raise TypeError(
        f"no implementation found for '{name_of(f)}' on types that implement __array_function__: {list(classes)}"
    )


def dispatching(level: Level, f: Any, instead: Any) -> Any:
    """`instead`, called for a function of NumPy without a rule, unless an argument has an `__array_function__`."""

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        if has_overrider(args, kwargs):
            return by_array_function(level, f, args, kwargs)
        return instead(*args, **kwargs)

    return dispatch


def in_place(level: Level, name: str, a: np.ndarray, b: Any) -> Any:
    """a op= b as ndarray has it: ufunc(a, b, out=a)."""
    descriptor = vars(np.ndarray)[f"__{name.rstrip('_')}__"]

    def compute(a: np.ndarray, b: Any) -> Any:
        return level.in_place_array(name, a, b)

    return call(level, descriptor, (a, b), {}, compute, True)


# -- attributes of arguments ---------------------------------------------------------------------------------


def attributes_of(copy: np.ndarray) -> dict[str, Any]:
    """The attributes of the copy of an argument; of arrays, what they hold now."""
    fields = getattr(copy, "__dict__", None) or {}
    return {name: (x, np.array(x) if isinstance(x, np.ndarray) else x) for name, x in fields.items()}


def hand_back(original: np.ndarray, copy: np.ndarray, before: dict[str, Any]) -> None:
    """Do to the attributes of an argument what the program has done to those of its copy."""
    own = getattr(original, "__dict__", None)
    if own is None:
        return
    now = copy.__dict__
    for name in [name for name in before if name not in now]:
        own.pop(name, None)
    for name, x in now.items():
        was, held = before.get(name, (None, None))
        if x is not was or name not in before:
            own[name] = x
        elif isinstance(x, np.ndarray) and x is not own.get(name) and not np.array_equal(x, held):
            if isinstance(own.get(name), np.ndarray) and own[name].shape == x.shape:
                own[name][...] = x
            else:
                own[name] = x
