"""What a rule's annotations say of the arguments that it is for."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing

from plaingrad.class_keys import entry_for
from plaingrad.errors import RuleError
from plaingrad.rule_data import Classes, Types
from plaingrad.tangents import Dual
from plaingrad.tangents.tangent_types import array_type

# A number annotated as `float` may be an int, as everywhere in typing.
TOWER = {float: (float, int), complex: (complex, float, int)}
ANYTHING = (inspect.Parameter.empty, Any, object)


def types_of(rule: Callable[..., Any], duals: bool = False) -> Types | None:
    """The arguments that `rule` is for; None if its parameters are not annotated.

    Args:
        rule: the rule as the user wrote it.
        duals: it takes pairs, and the function before them; `Dual[C]`, or `C`, is a pair whose primal is a `C`.

    Raises:
        RuleError: an annotation cannot be resolved, or says what no class says.
    """
    try:
        signature = inspect.signature(rule)
        hints = _hints(rule)
    except (NameError, AttributeError, SyntaxError, TypeError, ValueError) as error:
        if not getattr(rule, "__annotations__", True):
            return None
        raise RuleError(
            f"the annotations of {_name(rule)} cannot be resolved: {error}.\n"
            "  A rule is chosen by the types of its parameters, so they must be known where it is defined.\n"
            "  See docs: errors#rule"
        ) from None
    parameters = list(signature.parameters.values())
    if duals:
        parameters = parameters[1:]
    annotated = {p.name: hints.get(p.name, p.annotation) for p in parameters}
    resolved = {name: classes_of(hint, rule, name) for name, hint in annotated.items()}
    if all(classes is None for classes in resolved.values()):
        return None
    kinds = inspect.Parameter
    positional = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    rest = next((resolved[p.name] for p in parameters if p.kind is kinds.VAR_POSITIONAL), ())
    keywords = [p for p in parameters if p.kind is kinds.KEYWORD_ONLY]
    return Types(
        names=tuple(p.name for p in positional),
        classes=tuple(resolved[p.name] for p in positional),
        required=sum(p.default is kinds.empty for p in positional),
        by_name=sum(p.kind is kinds.POSITIONAL_OR_KEYWORD for p in positional),
        rest=rest,
        keywords=tuple((p.name, resolved[p.name]) for p in keywords),
        required_keywords=frozenset(p.name for p in keywords if p.default is kinds.empty),
        any_keyword=any(p.kind is kinds.VAR_KEYWORD for p in parameters),
        text="(" + ", ".join(_text(p, annotated[p.name]) for p in parameters) + ")",
    )


def _hints(rule: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of the parameters of `rule`, strings evaluated; that of the result does not matter."""
    annotations = dict(getattr(rule, "__annotations__", None) or {})
    annotations.pop("return", None)
    if not annotations:
        return {}
    cells = (
        zip(rule.__code__.co_freevars, rule.__closure__ or (), strict=False)
        if hasattr(rule, "__code__")
        else ()
    )
    local = {}
    for name, cell in cells:
        try:
            local[name] = cell.cell_contents
        except ValueError:
            continue
    holder = types.SimpleNamespace(__annotations__=annotations)
    return typing.get_type_hints(holder, getattr(rule, "__globals__", {}), local, include_extras=True)


def classes_of(hint: Any, rule: Callable[..., Any], name: str) -> Classes:
    """The classes that an annotation stands for; None for anything."""
    if any(hint is one for one in ANYTHING) or hint is Dual or hint is np.typing.ArrayLike:
        return None
    if hint is None:
        return (type(None),)
    if isinstance(hint, typing.TypeVar):
        members = hint.__constraints__ or ((hint.__bound__,) if hint.__bound__ is not None else ())
        return _union(members, rule, name) if members else None
    if type(hint).__name__ == "TypeAliasType" and hasattr(hint, "__value__"):
        return classes_of(hint.__value__, rule, name)
    if hasattr(hint, "__supertype__"):  # typing.NewType
        return classes_of(hint.__supertype__, rule, name)
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        primal, *notes = typing.get_args(hint)
        return classes_of(notes[0] if primal is Dual else primal, rule, name)
    if origin is typing.Union or origin is types.UnionType:
        return _union(typing.get_args(hint), rule, name)
    if origin is Dual:
        return classes_of(typing.get_args(hint)[0], rule, name)
    if origin is type:
        return (type,)
    if type(origin).__name__ == "TypeAliasType":
        return classes_of(origin, rule, name)
    if origin is np.ndarray:
        return _array_classes(*typing.get_args(hint), rule=rule, name=name)
    if origin is not None:
        hint = origin
    if not isinstance(hint, type):
        raise _unusable(hint, rule, name)
    try:
        isinstance(None, hint)
    except TypeError:  # a protocol that cannot be asked for
        raise _unusable(hint, rule, name) from None
    return entry_for(TOWER, hint) or (hint,)


def _array_classes(shape: Any, dtype: Any = Any, *, rule: Callable[..., Any], name: str) -> Classes:
    """The classes of arrays with the shape and dtype of an annotation, as in `np.ndarray[tuple[int], np.dtype[T]]`."""
    ndim = None
    if typing.get_origin(shape) is tuple and Ellipsis not in typing.get_args(shape):
        ndim = len(typing.get_args(shape))
    scalar = typing.get_args(dtype)[0] if typing.get_origin(dtype) is np.dtype else np.generic
    scalars = classes_of(scalar, rule, name)
    return tuple([array_type(cls, ndim) for cls in scalars or (np.generic,)])


def _union(members: Any, rule: Callable[..., Any], name: str) -> Classes:
    found: list[type] = []
    for member in members:
        classes = classes_of(member, rule, name)
        if classes is None:
            return None
        found += [cls for cls in classes if not any(cls is other for other in found)]
    return tuple(found)


def _unusable(hint: Any, rule: Callable[..., Any], name: str) -> RuleError:
    return RuleError(
        f"{_name(rule)} annotates its parameter {name!r} with {hint!r}, which is no class.\n"
        "  A rule is chosen by the classes of the arguments: write a class, a union of classes, or nothing.\n"
        "  See docs: errors#rule"
    )


def _text(parameter: inspect.Parameter, hint: Any) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(
        parameter.kind, ""
    )
    if hint is inspect.Parameter.empty:
        return stars + parameter.name
    return f"{stars}{parameter.name}: {inspect.formatannotation(hint)}"


def _name(rule: Callable[..., Any]) -> str:
    code = getattr(rule, "__code__", None)
    where = f" at {code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    return f"the rule {getattr(rule, '__qualname__', repr(rule))}{where}"
