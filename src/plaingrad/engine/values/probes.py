"""Probes: arrays of a class that writes down what NumPy does to make the result of a function an instance of a class.

A function is called with probes in place of the arrays of a subclass, and its rule with plain views of them; what the
rule gives is then made an instance as the probes have shown.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from plaingrad.class_keys import is_own_key
from plaingrad.engine.refusals.refuse import missing_rule, name_of, refuse
from plaingrad.engine.users_code.class_attributes import lookup
from plaingrad.engine.values.array_classes import WRAP, arrays_in, arrays_of, bare, overrides, replaced
from plaingrad.errors import MissingRuleError
from plaingrad.rewrite import PLAIN, in_force

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

NUMBERS = (np.ndarray, np.number, float, complex)


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
    if not kwargs and any(is_masked(a) for a in arrays):
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


def is_masked(a: Any) -> bool:
    """Whether an array is one of `numpy.ma`, which need not be imported."""
    classes = sys.modules.get("numpy.ma.core")
    return classes is not None and isinstance(a, classes.MaskedArray)


def without_poles(level: Level, f: Any, args: Any, plain_args: Any) -> Any:
    """The operands of a ufunc, constant under the mask of the result where slopes may be infinite."""
    if type(f) is not np.ufunc or f.signature is not None or len(args) != f.nin:
        return plain_args
    from plaingrad.rules.numpy import masked  # where there is such an array its rules have been met

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
