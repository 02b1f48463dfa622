"""Calls of functions of other systems of automatic differentiation, PyTorch and JAX: one step each, by their own.

Their arrays are values with an identity, as numbers are. What a program does with one that depends on the inputs, by
operators, methods or functions, is a call; what writes into one gives it another value.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad import number_classes, rulebook, systems
from plaingrad.engine.calls.system_arrays import (
    DETACHED,
    INTO,
    OUT_OF,
    REFUSED,
    ROOT,
    TRUNCATING,
    VERSION,
    buffers_of,
    check_constant,
    check_leaves,
    check_writable,
    depends,
    file_as,
    is_active_anywhere,
    memory_of,
    note_buffers,
    note_views,
    note_written,
    owns_memory,
    root_of,
    view_like,
    writes,
    written_roots,
)
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, SEQUENCE, holds_nothing, kind_of
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.users_code.class_attributes import lookup
from plaingrad.engine.values import captured
from plaingrad.engine.values.captured import check_captured, puts_elsewhere, runs_users_code
from plaingrad.engine.values.shared_tensors import (
    FROM_ARRAY,
    LENT,
    array_of,
    check_constant_write,
    check_own,
    is_in_array,
)
from plaingrad.rewrite import PLAIN
from plaingrad.rules import other_systems
from plaingrad.systems.steps import Place, Step, constants
from plaingrad.systems.tensor_memory import version_of
from plaingrad.systems.tensors import watching

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level
    from plaingrad.rule_data import Rule
    from plaingrad.systems import System

for _cls in (systems.Step, systems.Derived, systems.Conversion, Place):
    holds_nothing(_cls)


def system_among(*values: Any) -> System | None:
    """The system whose array is among `values`."""
    for x in values:
        found = number_classes.system_of(x)
        if found is not None:
            return found
    return None


def caller(level: Level, system: System, f: Callable[..., Any], name: str | None = None) -> Any:
    """What to call instead of a function of `system`, known by `name`."""

    def call_of_system(*args: Any, **kwargs: Any) -> Any:
        return call(level, system, f, args, kwargs, name)

    return call_of_system


def method_of(x: Any, name: str) -> Any:
    """The method `name` as a function of the array."""
    return getattr(type(x), name)


# -- calls -----------------------------------------------------------------------------------------------------------


def call(
    level: Level,
    system: System,
    f: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    name: str | None = None,
) -> Any:
    """f(*args, **kwargs), one step if something among the arguments is active."""
    leaves: list[Any] = []
    name = name or getattr(f, "__name__", "")
    if args and name in OUT_OF and (a := array_of(level, args[0])) is not None:
        return out_of_array(level, name, args[0], a, *args[1:])
    parts = [taken_apart(level, x, leaves) for x in args]
    named = {key: taken_apart(level, x, leaves) for key, x in kwargs.items()}
    if not leaves:
        return without_leaves(level, system, f, args, kwargs, name)
    if name == "__deepcopy__":
        f, parts, named = system.cloned, parts[:1], {}
    if (
        system.mutable
        and getattr(f, "__module__", "") == "_operator"
        and any(type(x) is np.ndarray for x in args)
        and name not in ("getitem", "setitem")
    ):
        missing_rule(f, "An array of NumPy and a tensor are its operands; make a tensor of the array before.")
    if name in REFUSED:
        missing_rule(f, "It hands out, or writes, the memory or the derivatives of a differentiated array.")
    if name in TRUNCATING:
        return f(*args, **kwargs)
    if name == "tolist":
        return level.prep(np.ndarray.tolist)(taken_out(level, system, as_array, args, {}))
    if name in OUT_OF and len(leaves) == 1 and leaves[0] is args[0]:
        return taken_out(level, system, f, args, kwargs)
    if (
        name in INTO
        and args
        and leaves
        and not (len(leaves) == 1 and leaves[0] is args[0] and number_classes.is_own(leaves[0]))
    ):
        return taken_in(level, system, f, args, kwargs, leaves)
    for x in (f, *args, *kwargs.values()):
        check_captured(level, x)
    if system.mutable:
        check_leaves(f, name, leaves)
        if name == "detach":
            return detached(level, system, f, tuple(parts), named, leaves)
    if system.mutable and (writes(name, kwargs) or getattr(f, "inplace", False) is True):
        return written(level, system, f, args, kwargs)
    return stepped(level, system, f, tuple(parts), named, leaves)


def without_leaves(level: Level, system: System, f: Any, args: Any, kwargs: Any, name: str) -> Any:
    """A call that is given nothing active, and may not come upon anything."""
    check_captured(level, f)
    if not system.mutable:
        for x in (*args, *kwargs.values()):  # the body of a loop, say, with what it has captured
            check_captured(level, x)
        return f(*args, **kwargs)
    if not runs_users_code(f, args, kwargs):
        for x in (*args[:1], kwargs.get("out")):
            if x is not None and writes(name, kwargs):
                check_constant_write(level, f, x)
        return f(*args, **kwargs)
    with watching(captured.watch(level, f)):
        return f(*args, **kwargs)


def detached(level: Level, system: System, f: Any, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
    """x.detach(): the same numbers, which may only leave PyTorch."""
    y = stepped(level, system, same, args, kwargs, leaves)
    y.__dict__[DETACHED] = True
    return y


def same(x: Any) -> Any:
    """A tensor in the memory of another."""
    return x.view_as(x)


same.__name__ = "detach"


def stepped(level: Level, system: System, f: Any, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
    """The step of a call, whose arguments name its leaves."""
    given = None
    if not all(map(number_classes.is_own, leaves)):  # numbers and arrays of NumPy beside its own arrays
        given = tuple(leaves)
        leaves = [
            x
            if number_classes.is_own(x)
            else apply(level, other_systems.taken_in, systems.Conversion(system, None, None), x)
            for x in leaves
        ]
    step = Step(system, f, args, kwargs, given)
    step.nested = level.parent is not PLAIN
    if runs_users_code(f, args, kwargs):
        step.watch = captured.watch(level, f)
    buffers = buffers_of(level, f, args) if system.mutable else []
    try:
        y = apply(level, other_systems.run, step, *leaves)
    except TypeError as error:
        if given is None:
            raise
        missing_rule(f, f"{system.name} takes no array in place of a differentiated number here ({error}).")
    finally:
        step.watch = None
    check_result(system, f, args, y)
    if system.mutable:
        note_buffers(buffers, leaves)
        note_views(y, leaves)
    if system.mutable and any(DETACHED in x.__dict__ for x in leaves) and system.is_array(y):
        y.__dict__[DETACHED] = True
    return y


def check_result(system: System, f: Any, args: Any, y: Any) -> None:
    """Refuse a result in which derivatives would be lost."""
    parts = [*constants(y)]
    for part in parts:
        kind = kind_of(type(part))
        if not system.is_array(part) and (
            kind != NOTHING and not (kind == ARRAY and part.dtype.kind not in "fcO")
        ):
            if type(part).__name__ not in ("dtype", "device", "layout", "memory_format"):
                missing_rule(f, f"It returns a {type(part).__qualname__}, whose derivative would be lost.")
    if not any(map(system.is_array, parts)) and puts_elsewhere(f, args, y):
        missing_rule(
            f, "It puts differentiated numbers into an object of its own, where they are not followed."
        )


def apply(level: Level, f: Any, *args: Any) -> Any:
    """f(*args) by its rule, f being one of `rules.other_systems`."""
    rule = rulebook.find(f)
    assert rule is not None
    return level.apply(rule, f, args, {})


def taken_apart(level: Level, x: Any, leaves: list[Any]) -> Any:
    """`x` with places for the active numbers and arrays in it, which are put into `leaves`."""
    kind = kind_of(type(x))
    if kind == NUMBER or kind == ARRAY:
        if kind == ARRAY and x.dtype.kind == "O":
            check_captured(level, x)
        system = number_classes.system_of(x)
        if system is not None and not system.varies(x):
            return x
        if system is not None and system.mutable:
            if written_roots or ROOT in x.__dict__:
                renewed_view(level, system, x)
            if (a := array_of(level, x)) is not None:
                leaves.append(read_of_array(level, system, x, a))
                return Place(len(leaves) - 1)
        if is_active_anywhere(level, x) if kind == NUMBER else level.calls.finds_active(x):
            at = next((k for k, leaf in enumerate(leaves) if leaf is x), len(leaves))
            if at == len(leaves):
                leaves.append(x)
            return Place(at)
        if system is not None and system.mutable:
            check_constant(level, x)
        return x
    t = type(x)
    if t is slice:
        return slice(*[taken_apart(level, part, leaves) for part in (x.start, x.stop, x.step)])
    if kind == NOTHING or (kind != SEQUENCE and kind != MAPPING):
        if kind != NOTHING and not isinstance(x, type) and not callable(x) and level.calls.finds_active(x):
            missing_rule(
                t,
                f"A {t.__qualname__} that holds differentiated numbers is given to a function of another "
                "system; pass the arrays in it.",
            )
        return x
    found = len(leaves)
    if kind == MAPPING:
        entries = {key: taken_apart(level, part, leaves) for key, part in x.items()}
        return x if len(leaves) == found else entries
    parts = [taken_apart(level, part, leaves) for part in x]
    if len(leaves) == found:
        return x
    if isinstance(x, tuple):
        return t(*parts) if hasattr(t, "_fields") else t(parts)
    return parts


# -- conversions -----------------------------------------------------------------------------------------------------


def as_array(x: Any) -> np.ndarray:
    """np.asarray(x)."""
    return np.asarray(x)


def taken_out(level: Level, system: System, f: Any, args: Any, kwargs: Any) -> Any:
    """A number or array of NumPy out of an array of the system."""
    x = args[0]
    check_leaves(f, "numpy", [x])
    made = functools.partial(_converted, f, args[1:], kwargs)
    y = apply(level, other_systems.taken_out, systems.Conversion(system, made, None), x)
    if system.mutable and isinstance(y, np.ndarray) and LENT not in x.__dict__:
        x.__dict__[LENT] = y, y.copy()  # a plain call has both in the same memory
    return y


def _converted(f: Any, args: Any, kwargs: Any, x: Any) -> Any:
    y = f(x, *args, **kwargs)
    return np.array(y) if isinstance(y, np.ndarray) else y


def taken_in(level: Level, system: System, f: Any, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
    """An array of the system out of numbers, lists of them, or an array of NumPy."""
    data = args[1] if getattr(f, "__name__", "") == "new_tensor" else args[0]
    kind = kind_of(type(data))
    if any(map(number_classes.system_of, leaves)):
        missing_rule(f, "It takes numbers out of differentiated arrays; use torch.stack, or jax.numpy.")
    y = f(*args, **kwargs)
    if not system.varies(y):
        return y
    if kind == SEQUENCE:
        data = level.prep(np.array)(data)
    found = apply(level, other_systems.taken_in, systems.Conversion(system, lambda x: y, y), data)
    if kind == ARRAY and not owns_memory(y):
        found.__dict__[FROM_ARRAY] = True
    return found


def read_of_array(level: Level, system: System, x: Any, a: np.ndarray) -> Any:
    """Tensor `x` as what it is now: the part `a` of an active array, in whose memory it lies."""
    if x.requires_grad:
        missing_rule(
            type(x),
            "It requires a gradient of PyTorch, and lies in memory of NumPy into which differentiated numbers were "
            "written; use a copy.",
        )
    check_own(level, x)
    alias = x.detach()
    y = apply(level, other_systems.taken_in, systems.Conversion(system, lambda a: alias, alias), a)
    y.__dict__[FROM_ARRAY] = True
    if DETACHED in x.__dict__:
        y.__dict__[DETACHED] = True
    return y


def out_of_array(level: Level, name: str, x: Any, a: np.ndarray, *args: Any) -> Any:
    """A number or array of NumPy out of tensor `x`, which lies in an active array, as its part `a`."""
    check_own(level, x)
    if name in ("numpy", "__array__"):
        return level.prep(np.ndarray.astype)(a, *args) if name == "__array__" and args else a
    y = level.prep(np.ndarray.tolist if name == "tolist" else np.ndarray.item)(a, *args)
    return level.prep(complex)(y) if name == "__complex__" else y


# -- writing ---------------------------------------------------------------------------------------------------------


def written(level: Level, system: System, f: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """A call that writes into its first argument: this becomes what the same call makes of a copy."""
    x = args[0] if args else None
    if kwargs.get("out") is not None or number_classes.system_of(x) is None:
        missing_rule(
            f, "It writes into an argument that is given by keyword; use the form that returns a new tensor."
        )
    check_writable(f, x)
    root, view = root_of(x), view_like(x)

    def on_copy(root: Any, *others: Any, **options: Any) -> Any:
        copy = root.clone()
        f(view(copy), *others, **options)
        return copy

    on_copy.__name__ = getattr(f, "__name__", "write").rstrip("_")
    leaves: list[Any] = []
    parts = tuple([taken_apart(level, part, leaves) for part in (root, *args[1:])])
    named = {key: taken_apart(level, part, leaves) for key, part in kwargs.items()}
    if type(parts[0]) is not Place:
        parts = (root.detach().clone(), *parts[1:])  # what it was
    new = stepped(level, system, on_copy, parts, named, leaves)
    with sys.modules["torch"].no_grad():
        root.copy_(new)
    file_as(level, root, new)
    root.__dict__[VERSION] = version_of(root)
    note_written(root)
    return x


def renewed_view(level: Level, system: System, x: Any) -> None:
    """A view of a tensor that was written since: it depends on what the tensor does now."""
    root = x.__dict__.get(ROOT)
    if root is None:
        reference = written_roots.get(memory_of(x))
        root = None if reference is None else reference()
        if root is None or root is x or not is_active_anywhere(level, root):
            return
        x.__dict__[ROOT] = root
    elif x.__dict__.get(VERSION) == version_of(x):
        return
    if is_active_anywhere(level, root):
        file_as(level, x, stepped(level, system, view_like(x), (Place(0),), {}, [root]))
    x.__dict__[VERSION] = version_of(x)


# -- attributes, iteration, functions of others --------------------------------------------------------------------


def attribute(level: Level, system: System, x: Any, name: str) -> Any:
    """x.name."""
    if not is_active_anywhere(level, x) or not system.varies(x):
        return getattr(x, name)
    if name == "data" and system.mutable:
        return call(level, system, same, (x,), {})
    found = getattr(x, name)
    if name == "grad" or name.startswith("__"):
        return found
    if number_classes.find(type(found)) is not None and system.varies(found):
        return call(level, system, getter(name), (x,), {})
    if name == "at" and not system.mutable:
        missing_rule(
            lookup(type(x), name),
            "x.at[k].set(v) is not followed outside of JAX; put it into a function of JAX.",
        )
    return found


@functools.lru_cache(256)
def getter(name: str) -> Callable[[Any], Any]:
    """The function that reads an attribute."""

    def read(x: Any) -> Any:
        return getattr(x, name)

    read.__name__ = name
    return read


def elements(level: Level, x: Any) -> Iterator[Any]:
    """The entries of an array along its first axis."""
    return (level.getitem(x, k) for k in range(len(x)))


def is_given(level: Level, args: Any) -> bool:
    """Whether an active array of a system is among the arguments."""
    return any(number_classes.system_of(x) is not None and depends(level, x) for x in args)


def is_lent_to(level: Level, rule: Rule, f: Any, x: Any) -> bool:
    """Whether a function that is not the system's is given a tensor `x` that lies in an active array."""
    is_tensor = rule.own and number_classes.system_of(x) is not None
    return is_tensor and type(f) is not FunctionType and is_in_array(level, x)


def given_to_others(level: Level, f: Any, args: Any, kwargs: Any) -> Any:
    """A function of Python or NumPy that is given an array of a system."""
    system = system_among(*args)
    assert system is not None
    name = getattr(f, "__name__", "")
    if f in OPERATORS:
        return call(level, system, f, args, kwargs)
    if f in (np.array, np.asarray, np.asanyarray):
        return level.prep(f)(call(level, system, as_array, args[:1], {}, "numpy"), *args[1:], **kwargs)
    if f is float or f is complex or getattr(f, "__self__", None) in (float, complex):
        cls = f if isinstance(f, type) else f.__self__
        x = args[-1]
        return call(level, system, float_of if cls is float else complex_of, (x,), {}, f"__{cls.__name__}__")
    if getattr(f, "__module__", "") in ("math", "cmath"):
        plain = [
            call(level, system, float_of, (x,), {}, "__float__") if number_classes.system_of(x) else x
            for x in args
        ]
        return level.prep(f)(*plain, **kwargs)
    missing_rule(
        f, f"`{name}` is a function of numbers and arrays of NumPy, and is given an array of {system.name}."
    )


def checked_entries(level: Level, rule: Rule, f: Any, entries: Any) -> Any:
    """The argument of a function of NumPy, refused if it is a list of arrays of a system that depend on inputs."""
    if number_classes.known and rule.own and kind_of(type(entries)) == SEQUENCE:
        for x in entries:
            system = number_classes.system_of(x)
            if system is not None and ((x.ndim and is_active_anywhere(level, x)) or is_in_array(level, x)):
                missing_rule(f, f"It is a function of NumPy, and is given arrays of {system.name}.")
    return entries


def float_of(x: Any) -> float:
    """float(x)."""
    return float(x)


def complex_of(x: Any) -> complex:
    """complex(x)."""
    return complex(x)


OPERATORS = frozenset(
    f for f in vars(operator).values() if callable(f) and getattr(f, "__module__", "") == "_operator"
) | {abs, pow, divmod}
