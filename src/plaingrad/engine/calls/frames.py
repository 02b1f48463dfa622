"""Builtins that look at the frame that calls them: locals, vars, dir, eval, exec, class statements.

Rewritten frames have one hidden local; what these builtins show is what a plain frame would show.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator, MutableMapping
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from plaingrad.engine.compiled import FOR_ANY_LEVEL
from plaingrad.engine.values import texts
from plaingrad.rewrite import rewrite_function, rewritten

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

HIDDEN = ".level"
CO_OPTIMIZED = 1


class VisibleLocals(MutableMapping[str, Any]):
    """`frame.f_locals` since 3.13, which writes through to the frame, without the hidden locals."""

    def __init__(self, mapping: Any) -> None:
        self._mapping = mapping

    def __getitem__(self, name: str) -> Any:
        if name.startswith(HIDDEN):
            raise KeyError(name)
        return self._mapping[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._mapping[name] = value

    def __delitem__(self, name: str) -> None:
        del self._mapping[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._mapping if not name.startswith(HIDDEN))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))

    def copy(self) -> dict[str, Any]:
        """The locals now."""
        return dict(self)

    def __getattribute__(self, name: str) -> Any:
        # Which of these the mapping of a frame has depends on the CPython (`pop` came in 3.14), and code asks.
        if name in ("clear", "pop", "popitem") and not hasattr(self._mapping, name):
            raise AttributeError(name)
        return super().__getattribute__(name)


def visible_locals(frame: FrameType) -> Any:
    """`frame.f_locals`, as a plain frame would show it."""
    mapping = frame.f_locals
    if not frame.f_code.co_flags & CO_OPTIMIZED:
        return mapping
    if type(mapping) is dict:  # before 3.13: one dictionary for the frame, refreshed by each look
        for name in [name for name in mapping if name.startswith(HIDDEN)]:
            del mapping[name]
        return mapping
    return VisibleLocals(mapping)


def snapshot_of_locals(frame: FrameType) -> Any:
    """What `locals()` is in `frame`: the namespace itself, or a dictionary of the locals."""
    mapping = visible_locals(frame)
    return dict(mapping) if type(mapping) is VisibleLocals else mapping


def locals_() -> Any:
    """`locals()` of the calling frame."""
    return snapshot_of_locals(sys._getframe(1))


def vars_at(level: Level) -> Callable[..., Any]:
    """vars(...): of the calling frame, or of an object, which is met."""

    def vars_(*args: Any) -> Any:
        if not args:
            return snapshot_of_locals(sys._getframe(1))
        level.meet(args[0])
        return vars(*args)

    return vars_


def dir_at(level: Level) -> Callable[..., Any]:
    """dir(...): of the calling frame, or of an object, which is met."""

    def dir_(*args: Any) -> Any:
        if not args:
            return sorted(snapshot_of_locals(sys._getframe(1)))
        level.meet(args[0])
        return dir(*args)

    return dir_


def _namespaces(frame: FrameType, spaces: tuple[Any, ...]) -> tuple[Any, Any]:
    globals_ = spaces[0] if spaces else None
    locals_ = spaces[1] if len(spaces) > 1 else None
    if globals_ is None:
        globals_ = frame.f_globals
        locals_ = snapshot_of_locals(frame) if locals_ is None else locals_
    elif locals_ is None:
        locals_ = globals_
    if isinstance(globals_, dict) and "__builtins__" not in globals_:
        globals_["__builtins__"] = builtins
    return globals_, locals_


def _compiled(source: Any, mode: str, frame: FrameType, level: Level) -> CodeType:
    if isinstance(source, CodeType):
        return rewritten(source, FOR_ANY_LEVEL)
    if level.texts and isinstance(source, (str, bytes)):
        texts.check(level, source)
    if mode == "eval" and isinstance(source, str):
        source = source.lstrip(" \t")
    flags = frame.f_code.co_flags & _FUTURE
    return rewritten(compile(source, "<string>", mode, flags, dont_inherit=True), FOR_ANY_LEVEL)


_FUTURE = 0
for _name in __import__("__future__").all_feature_names:
    _FUTURE |= getattr(__import__("__future__"), _name).compiler_flag


def eval_at(level: Level) -> Callable[..., Any]:
    """eval(...): the code is rewritten and runs in the caller's namespaces."""

    def eval_(source: Any, globals: Any = None, locals: Any = None, /, **named: Any) -> Any:
        frame = sys._getframe(1)
        globals = named.get("globals", globals)
        locals = named.get("locals", locals)
        spaces = _namespaces(frame, (globals, locals))
        return eval(_compiled(source, "eval", frame, level), *spaces)

    return eval_


def exec_at(level: Level) -> Callable[..., Any]:
    """exec(...): the code is rewritten and runs in the caller's namespaces."""

    def exec_(source: Any, globals: Any = None, locals: Any = None, /, **named: Any) -> Any:
        frame = sys._getframe(1)
        globals = named.pop("globals", globals)
        locals = named.pop("locals", locals)
        spaces = _namespaces(frame, (globals, locals))
        return exec(_compiled(source, "exec", frame, level), *spaces, **named)

    return exec_


def build_class_at(level: Level) -> Callable[..., Any]:
    """A class statement: its body runs rewritten, its bases are met."""

    def build_class(body: Any, *args: Any, **kwargs: Any) -> Any:
        for base in args[1:]:
            level.meet(base)
        if "metaclass" in kwargs:
            level.meet(kwargs["metaclass"])
        return builtins.__build_class__(rewrite_function(body), *args, **kwargs)

    return build_class
