"""Refusals: what and where (the user's file and line), why, what to do, where to read more."""

from __future__ import annotations

import sys
from types import FrameType, FunctionType, TracebackType
from typing import Any, NoReturn

from plaingrad.errors import MissingRuleError, PlaingradError

DOCS = "docs: errors"


def user_frame() -> FrameType | None:
    """The innermost frame that is not plaingrad's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_engine_frame(frame):
        frame = frame.f_back
    return frame


def is_engine_frame(frame: FrameType) -> bool:
    """Whether `frame` runs code of this package."""
    return frame.f_globals.get("__name__", "").startswith("plaingrad.")


def users_frames(traceback: TracebackType | None) -> TracebackType | None:
    """`traceback` without the engine's frames, so that it shows the user's lines."""
    kept = []
    at = traceback
    while at is not None:
        if not is_engine_frame(at.tb_frame):
            kept.append(at)
        at = at.tb_next
    following = None
    for at in reversed(kept):
        following = TracebackType(following, at.tb_frame, at.tb_lasti, at.tb_lineno)
    return following


def where() -> str:
    """ "at model.py:41, in `load`": the user's line that is being executed."""
    frame = user_frame()
    if frame is None:
        return "at an unknown place"
    return f"at {frame.f_code.co_filename}:{frame.f_lineno}, in `{frame.f_code.co_name}`"


def name_of(f: Any) -> str:
    """A callable's full name, as a user would write it."""
    name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None) or repr(f)
    module = getattr(f, "__module__", None)
    owner = getattr(f, "__objclass__", None)
    if module is None and owner is not None and owner.__module__ not in ("builtins", None):
        module = owner.__module__
    if module in (None, "builtins"):
        return name
    return f"{module}.{name}"


def name_of_object(x: Any) -> str:
    """A name under which the user's frames know `x`."""
    frame = user_frame()
    while frame is not None:
        if not is_engine_frame(frame):
            for kind, names in (("local", frame.f_locals), ("global", frame.f_globals)):
                for name, value in list(names.items()):
                    if value is x:
                        return f"the {kind} `{name}`"
                    fields = getattr(value, "__dict__", None)
                    if type(fields) is dict and not name.startswith("__"):
                        for field, inner in list(fields.items()):
                            if inner is x:
                                return f"`{name}.{field}`"
        frame = frame.f_back
    return "a global, closure or attribute"


def refuse(error: type[PlaingradError], what: str, why: str, fix: str, anchor: str) -> NoReturn:
    """Raise `error` with its four parts."""
    raise error(f"{what}, {where()}.\n  {why}\n  To go on: {fix}.\n  See {DOCS}#{anchor}")


def missing_rule(f: Any, why: str) -> NoReturn:
    """Refuse a call of `f`, which has neither a rule nor Python code, or a rule that is not enough."""
    full = name_of(f)
    short = full.rsplit(".", 1)[-1]
    ruled = isinstance(f, FunctionType)  # Python code comes here only for what its rule says
    what = "has a rule that does not serve here" if ruled else "is C code without a derivative rule"
    raise MissingRuleError(
        f"`{full}` {where()}, {what}.\n  {why}\n"
        f"  If it does not matter: plaingrad.nondifferentiable({short}). Otherwise: @plaingrad.rrule({short}).\n"
        f"  See {DOCS}#missing-rule"
    )
