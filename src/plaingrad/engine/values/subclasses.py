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

import builtins
import operator
import types
import weakref
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from plaingrad import rulebook
from plaingrad.class_keys import all_among, classes_of, is_among, is_own_key
from plaingrad.engine.memory.kinds import OBJECT, is_heap, kind_of
from plaingrad.engine.refusals.refuse import missing_rule, name_of, refuse
from plaingrad.engine.users_code.class_attributes import DESCRIPTORS, lookup
from plaingrad.errors import MissingRuleError
from plaingrad.rewrite import PLAIN, in_force
from plaingrad.rulebook import Rule
from plaingrad.rules.numpy import masked

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

ArrayFunction = type(np.sum)
CODES_OF_PYTHON = frozenset((types.BuiltinFunctionType, FunctionType))
BINARY_OPERATORS = {
    getattr(operator, name): name.rstrip("_")
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
        *("and_", "or_", "xor", "lshift", "rshift"),
    )
}
UNARY_OPERATORS = {operator.neg: "neg", operator.pos: "pos", operator.invert: "invert"}
UNARY_OPERATORS |= {operator.abs: "abs", builtins.abs: "abs"}

# What a class may define without any influence on what NumPy's functions do with its arrays, but for the class and the
# attributes of their results.
NEUTRAL = frozenset(
    "__class__ __class_getitem__ __dict__ __dir__ __doc__ __format__ __getnewargs__ __getstate__ __hash__ __init__ "
    "__init_subclass__ __module__ __new__ __qualname__ __reduce__ __reduce_ex__ __repr__ __setstate__ __sizeof__ "
    "__slots__ __str__ __subclasshook__ __weakref__ __array_finalize__ __array_priority__ __annotations__ "
    "__static_attributes__ __firstlineno__ __orig_bases__ __parameters__ __abstractmethods__ __del__ dump dumps tofile "
    "tostring tobytes".split()
)
RELEVANT = frozenset(dir(np.ndarray)) - NEUTRAL

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
    _module = vars(np)["_core"] if hasattr(np, "_core") else vars(np)["core"]
    if _name in vars(np.ndarray) and hasattr(_module._methods, _body):
        BODIES[vars(np.ndarray)[_name]] = getattr(_module._methods, _body)


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
WRAP = vars(np.ndarray)["__array_wrap__"]
GETITEM = vars(np.ndarray)["__getitem__"]
SETITEM = vars(np.ndarray)["__setitem__"]
ITER = vars(np.ndarray)["__iter__"]
# Functions and modules of NumPy written in Python that read plain arrays and wrap what they give, whatever methods the
# class has; at the bottom they are C code.
BLOCK_MODULES = ("numpy.linalg", "numpy.fft")
BLOCKS = frozenset(
    (
        *(np.einsum, np.broadcast_to, np.convolve, np.correlate, np.interp),
        np.broadcast_to.__wrapped__.__globals__["_broadcast_to"],  # behind np.broadcast_arrays
    )
)
NUMBERS = (np.ndarray, np.number, float, complex)
BY_CLASS = ("__array_wrap__", "__array_ufunc__")
FILL = np.ndarray.fill
ROUND = np.ndarray.round
VECTORIZED = getattr(np.vectorize, "_vectorize_call", None)


# -- which calls ---------------------------------------------------------------------------------------------


def is_subclassed(x: Any) -> bool:
    """Whether `x` is an array of a subclass of ndarray."""
    t = type(x)
    return t is not np.ndarray and issubclass(t, np.ndarray)


def among(values: Iterable[Any], depth: int = 2) -> bool:
    """Whether NumPy asks a class before it works on `values`, or what is in lists and tuples there.

    That is an array of a subclass of ndarray, or an object with `__array_function__` or `__array_ufunc__`.
    """
    for x in values:
        t = type(x)
        if t is np.ndarray or t is float or t is int:
            continue
        if t is list or t is tuple:
            if depth and x and (len(x) < 8 or not all_among(x, ORDINARY)) and among(x, depth - 1):
                return True
        elif issubclass(t, np.ndarray) or (is_heap(t) and has_protocol(t)):
            return True
    return False


ORDINARY = frozenset((float, int, complex, bool, str, type(None), slice, np.ndarray, np.float64))


def among_entries(x: Any) -> bool:
    """As `among`, of one list or tuple, which may be long."""
    return among((x,), 2)


def has_protocol(cls: type) -> bool:
    """Whether NumPy's functions or ufuncs leave the word to `cls`, which is no array."""
    if issubclass(cls, (type, np.generic)):
        return False
    return lookup(cls, "__array_function__") is not None or lookup(cls, "__array_ufunc__") is not None


def speaks(f: Any, cls: type) -> bool:
    """Whether the function `f` of NumPy leaves the word to `cls`, which is no array."""
    if type(f) is ArrayFunction:
        return lookup(cls, "__array_function__") is not None
    if f in UNARY_OPERATORS:
        return lookup(cls, f"__{UNARY_OPERATORS[f]}__") is not None
    if f in BINARY_OPERATORS:
        return True
    return is_ufunc(f) and lookup(cls, "__array_ufunc__") is not None


def is_ufunc(f: Any) -> bool:
    """Whether `f` is a ufunc, or a method of ufuncs."""
    return type(f) is np.ufunc or (is_among(type(f), DESCRIPTORS) and f.__objclass__ is np.ufunc)


def flat(values: Iterable[Any], depth: int = 2) -> list[Any]:
    """`values`, and what is in lists and tuples there."""
    found: list[Any] = []
    for x in values:
        if depth and (type(x) is list or type(x) is tuple):
            found += flat(x, depth - 1)
        else:
            found.append(x)
    return found


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


def arrays_in(values: Iterable[Any], depth: int = 2) -> list[np.ndarray]:
    """The arrays of subclasses of ndarray in `values`, each once."""
    found: list[np.ndarray] = []
    for x in values:
        if is_subclassed(x):
            found.append(x)
        elif depth and (type(x) is list or type(x) is tuple):
            found += arrays_in(x, depth - 1)
        elif depth and type(x) is dict:
            found += arrays_in(x.values(), depth - 1)
    return list({id(x): x for x in found}.values())


def is_numpys(f: Any) -> bool:
    """Whether `f` is code of NumPy's that works on arrays."""
    t = type(f)
    if t is np.ufunc or t is ArrayFunction:
        return True
    if is_among(t, DESCRIPTORS):
        return f.__objclass__ is np.ndarray or f.__objclass__ is np.ufunc
    if is_among(t, CODES_OF_PYTHON):
        module = getattr(f, "__module__", None)
        if f in BINARY_OPERATORS or f in UNARY_OPERATORS:
            return True
        return (
            type(module) is str and module.partition(".")[0] == "numpy" and not module.startswith("numpy.ma")
        )
    return False


def of_mathematics(f: Any) -> bool:
    """Whether `f` is a function of `math`, which makes a float of its argument first."""
    return type(f) is types.BuiltinFunctionType and f.__module__ == "math"


def overrides(cls: type, name: str) -> bool:
    """Whether a class between `cls` and ndarray defines `name`."""
    found = lookup(cls, name)
    return found is not None and found is not vars(np.ndarray).get(name)


def has_methods(cls: type) -> bool:
    """Whether NumPy's functions that are written in Python may find methods of the program in instances of `cls`."""
    for base in cls.__mro__:
        if base is np.ndarray:
            return False
        if not RELEVANT.isdisjoint(base.__dict__):
            return True
    return False


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
        plain = {id(a): bare(a) for a in arrays}
        z = compute(*replaced(args, plain), **replaced(kwargs, plain))
        return WRAP(arrays[0], z) if isinstance(z, np.ndarray) else z
    if f is ROUND and overrides(classes[0], "__array_ufunc__"):
        refuse_class(f, classes[0])
    if f is FILL and len(args) == 2 and is_subclassed(args[1]):
        args = (args[0], level.prep(complex if args[0].dtype.kind == "c" else float)(args[1]))
        arrays = arrays_in(args)
    return wrapped(level, f, args, kwargs, compute, arrays, writes)


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


ARRAY_FUNCTION = vars(np.ndarray)["__array_function__"]


def implementers(args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """The arguments with an `__array_function__`, plain arrays too, one of each class, in the order NumPy asks them.

    That is their own order, but an instance of a subclass comes before one of its base class.
    """
    found: list[Any] = []
    values = [*args, *kwargs.values()]
    for x in values:
        if type(x) is list or type(x) is tuple:
            values += x if len(x) < 1000 else ()
    for x in values:
        t = type(x)
        if lookup(t, "__array_function__") is None or any(type(other) is t for other in found):
            continue
        place = next((k for k, other in enumerate(found) if issubclass(t, type(other))), len(found))
        found.insert(place, x)
    return found


def has_overrider(args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether the class of an argument has an `__array_function__` of its own."""
    return any(
        lookup(type(x), "__array_function__") is not ARRAY_FUNCTION for x in implementers(args, kwargs)
    )


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


def arrays_of(args: Any, kwargs: dict[str, Any]) -> list[np.ndarray]:
    """All arrays among the arguments."""
    values = [*args, *kwargs.values()]
    for x in values:
        if type(x) is list or type(x) is tuple:
            values += x if len(x) < 1000 else ()
    return [x for x in values if isinstance(x, np.ndarray)]


def rule_of_implementation(f: FunctionType) -> Rule | None:
    """The rule of the public function of NumPy behind which `f` is the Python code; classes call that directly."""
    module = f.__module__
    if type(module) is not str or not module.startswith("numpy") or hasattr(f, "_implementation"):
        return None
    public = f.__globals__.get(f.__name__)
    if type(public) is ArrayFunction and public._implementation is f:
        return rulebook.find(public)
    return None


def dispatching(level: Level, f: Any, instead: Any) -> Any:
    """`instead`, called for a function of NumPy without a rule, unless an argument has an `__array_function__`."""

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        if has_overrider(args, kwargs):
            return by_array_function(level, f, args, kwargs)
        return instead(*args, **kwargs)

    return dispatch


# -- probes --------------------------------------------------------------------------------------------------


class Probe(np.ndarray):
    """An array that writes down what NumPy does to make a result an instance of its class.

    Attributes:
        source: which of the arguments NumPy made it from.
        stands_for: a weak reference to the class that instances of this one stand for.
        wrapping: what else `__array_wrap__` of that argument was called with, if it was.
    """

    stands_for: Callable[[], type | None]

    def __array_finalize__(self, obj: Any) -> None:
        self.source = getattr(obj, "source", None)
        self.wrapping = None
        super().__array_finalize__(obj)

    def __array_wrap__(self, array: Any, *options: Any) -> Any:
        z = np.ndarray.__array_wrap__(self, array)
        if not isinstance(z, Probe):
            z = z.view(type(self))
        z.source = self.source
        z.wrapping = options
        return z


_probes: WeakKeyDictionary[type, type] = WeakKeyDictionary()


def probe_class(cls: type) -> type:
    """The class of probes that stand for instances of `cls`."""
    found = _probes.get(cls) if is_own_key(cls) else None
    if found is None:
        fields: dict[str, Any] = {"__array_priority__": getattr(cls, "__array_priority__", 0.0)}
        if cls.__dict__.get("__array_ufunc__", 0) is None:
            fields["__array_ufunc__"] = None
        fields["stands_for"] = weakref.ref(cls)
        found = type("Probe", (Probe, np.matrix) if issubclass(cls, np.matrix) else (Probe,), fields)
        if is_own_key(cls):
            _probes[cls] = found
    return found


def bare(a: np.ndarray) -> np.ndarray:
    """`a` as a plain array over the same memory."""
    return np.ndarray.view(a, np.ndarray)


def as_numba_has_them(args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The arguments of a function that Numba has compiled: to it an array of any class is plain memory."""
    if not among((*args, *kwargs.values())):
        return args, kwargs
    plain = {id(a): bare(a) for a in arrays_in((*args, *kwargs.values()))}
    return replaced(args, plain), replaced(kwargs, plain)


def replaced(x: Any, table: dict[int, Any], depth: int = 2) -> Any:
    """`x` with the arrays that `table` knows by identity replaced."""
    found = table.get(id(x))
    if found is not None:
        return found
    t = type(x)
    if depth and (t is list or t is tuple):
        return t([replaced(part, table, depth - 1) for part in x])
    if depth and t is dict:
        return {key: replaced(part, table, depth - 1) for key, part in x.items()}
    return x


def wrapped(
    level: Level,
    f: Any,
    args: Any,
    kwargs: dict[str, Any],
    compute: Callable[..., Any],
    arrays: list[np.ndarray],
    writes: bool,
) -> Any:
    """compute(*args, **kwargs) of plain views, the result made an instance of the class that NumPy makes it of."""
    plain = {id(a): bare(a) for a in arrays}
    probes: dict[int, Any] = {}
    if writes:
        probes = {id(x): np.array(x) for x in arrays_of(args, kwargs)}
    for k, a in enumerate(arrays):
        probe = probes.get(id(a), plain[id(a)]).view(probe_class(type(a)))
        probe.source = k
        if not a.flags.writeable:
            probe.flags.writeable = False
        probes[id(a)] = probe
    try:
        model = probed(f, replaced(args, probes), replaced(kwargs, probes))
    except Exception:  # the class may have another error than its probes
        if not writes:
            probed(f, args, kwargs)
            refuse_class(f, type(arrays[0]))
        raise
    plain_args = replaced(args, plain)
    if not kwargs and any(isinstance(a, np.ma.MaskedArray) for a in arrays):
        plain_args = without_poles(level, f, args, plain_args)
    z = compute(*plain_args, **replaced(kwargs, plain))
    originals = {id(plain[id(a)]): a for a in arrays}
    originals.update({id(probes[id(a)]): a for a in arrays})
    if "where" not in kwargs and not agree(model, z):
        refuse_class(f, type(arrays[0]))
    return dressed(level, f, model, z, arrays, originals)


def agree(model: Any, z: Any) -> bool:
    """Whether a rule has given the numbers that NumPy gives."""
    if isinstance(model, (tuple, list)) and isinstance(z, (tuple, list)):
        return all(map(agree, model, z))
    if isinstance(model, np.ndarray) and model.dtype.kind in "fc" and isinstance(z, NUMBERS):
        given, found = bare(model).ravel(), bare(np.asarray(z)).ravel()
        return given.shape == found.shape and np.allclose(given, found, 1e-6, 1e-12, equal_nan=True)
    return True


def without_poles(level: Level, f: Any, args: Any, plain_args: Any) -> Any:
    """The operands of a ufunc, constant under the mask of the result where slopes may be infinite."""
    if type(f) is not np.ufunc or f.signature is not None or len(args) != f.nin:
        return plain_args
    poles = probed(masked.poles_under_mask, (f, f, args, {}), {})
    if poles is None:
        return plain_args
    return tuple([level.calls.inside(masked.with_constants)(x, poles) for x in plain_args])


def probed(f: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What NumPy makes of probes."""
    with np.errstate(all="ignore"):
        return in_force(PLAIN, f, *args, **kwargs)


def dressed(
    level: Level, f: Any, model: Any, z: Any, arrays: list[np.ndarray], originals: dict[int, Any]
) -> Any:
    """The result `z` of a rule as an instance of the class that `model`, the result for probes, says."""
    if isinstance(model, (tuple, list)) and isinstance(z, (tuple, list)) and len(model) == len(z):
        parts = [dressed(level, f, m, part, arrays, originals) for m, part in zip(model, z, strict=True)]
        if all(a is b for a, b in zip(parts, z, strict=True)):
            return z
        return type(z)(*parts) if hasattr(z, "_fields") else type(z)(parts)
    if not isinstance(model, Probe):
        if isinstance(z, np.ndarray):
            z = originals.get(id(z), z) if model is None else z
            if isinstance(model, np.generic) and z.ndim == 0:
                return level.read_array(z, ())
            if model is not None and np.shape(model) != z.shape:
                refuse_class(f, type(arrays[0]))
        elif isinstance(model, np.ndarray) and isinstance(z, (np.generic, float, complex)):
            return level.prep(np.asarray)(z)
        return z
    source = arrays[model.source] if model.source is not None else None
    same = originals.get(id(model))
    if same is not None:
        z = same
    elif id(z) in originals:
        z = originals[id(z)]
    cls = next(type(a) for a in arrays if type(model).stands_for() is type(a))
    if model.wrapping is not None and source is not None and overrides(cls, "__array_wrap__"):
        options = replaced(model.wrapping, originals, 3)
        for probe in arrays_in(options, 3):
            if isinstance(probe, Probe):
                originals[id(probe)] = counterpart(f, probe, arrays)
        options = replaced(options, originals, 3)
        z = z if isinstance(z, np.ndarray) else level.prep(np.asarray)(z)
        return level._call_own(lookup(cls, "__array_wrap__"), source, z, *options)
    if same is not None:
        return same
    if not isinstance(z, np.ndarray):
        z = level.prep(np.asarray)(z)
    if z.shape != model.shape and not (issubclass(cls, np.matrix) and z.size == model.size):
        refuse_class(f, cls)
    z = bare(z) if type(z) is not np.ndarray else z
    if source is not None and type(source) is cls:
        return WRAP(source, z)
    return np.ndarray.__new__(cls, z.shape, z.dtype, z, 0, z.strides) if z.size else z.view(cls)


def counterpart(f: Any, probe: Probe, arrays: list[np.ndarray]) -> np.ndarray:
    """What an argument in another shape is that NumPy hands to `__array_wrap__`."""
    source = arrays[probe.source] if probe.source is not None else None
    if source is None or probe.size != source.size:
        cls = "a subclass of ndarray" if source is None else f"a `{type(source).__qualname__}`"
        missing_rule(f, f"One of its arguments is {cls}, whose `__array_wrap__` it calls with new arrays.")
    return WRAP(source, bare(source).reshape(probe.shape))


def refuse_class(f: Any, cls: type) -> None:
    """Refuse `f` on arrays of a class with which its rule does not agree."""
    refuse(
        MissingRuleError,
        f"`{name_of(f)}` of a `{cls.__module__}.{cls.__qualname__}`",
        why="For arrays of this class its result is another than for plain arrays, and has no derivative rule.",
        fix="pass plain arrays (`np.asarray(a)`), or @plaingrad.rrule for a function of your own around it",
        anchor="missing-rule",
    )


# -- indexing and writing ------------------------------------------------------------------------------------


def read(level: Level, a: np.ndarray, k: Any) -> Any:
    """a[k] as ndarray has it."""
    level.calls.meet(a)
    z = level.read_array(bare(a), bare_key(k))
    return WRAP(a, z) if isinstance(z, np.ndarray) and type(z) is np.ndarray else z


def bare_key(k: Any) -> Any:
    """An index with its arrays as plain ones."""
    if type(k) is tuple:
        return tuple([bare_key(part) for part in k])
    return bare(k) if is_subclassed(k) else k


def write(level: Level, v: Any, a: np.ndarray, k: Any) -> None:
    """a[k] = v as ndarray has it."""
    level.calls.meet(a)
    if is_subclassed(v):
        v = bare(v)
    if overrides(type(a), "__getitem__") and is_basic(
        k, a.ndim
    ):  # NumPy asks the class for what is to be written
        part = level._call_own(lookup(type(a), "__getitem__"), a, k)
        if isinstance(part, np.ndarray):
            a, k = part, Ellipsis
    level.write_array(v, bare(a), bare_key(k))


def is_basic(k: Any, ndim: int) -> bool:
    """Whether the index `k` names a part of an array of `ndim` axes that is a view, not one element."""
    parts = k if type(k) is tuple else (k,)
    ints = [part for part in parts if isinstance(part, (int, np.integer)) and not isinstance(part, bool)]
    rest = [part for part in parts if part is None or part is Ellipsis or type(part) is slice]
    return len(ints) + len(rest) == len(parts) and len(ints) < max(ndim, 1)


def in_place(level: Level, name: str, a: np.ndarray, b: Any) -> Any:
    """a op= b as ndarray has it: ufunc(a, b, out=a)."""
    descriptor = vars(np.ndarray)[f"__{name.rstrip('_')}__"]

    def compute(a: np.ndarray, b: Any) -> Any:
        return level.in_place_array(name, a, b)

    return call(level, descriptor, (a, b), {}, compute, True)


def elements(level: Level, a: np.ndarray) -> Any:
    """The entries of `a` one by one, as a loop over it gets them."""
    method = lookup(type(a), "__getitem__")
    if method is GETITEM:
        return (read(level, a, k) for k in range(len(a)))
    return (level._call_own(method, a, k) for k in range(len(a)))


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
