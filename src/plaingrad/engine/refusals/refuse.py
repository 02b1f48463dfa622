"""Refusals: what and where (the user's file and line), why, what to do, where to read more."""

from __future__ import annotations

from types import AsyncGeneratorType, CoroutineType, FunctionType, GeneratorType, TracebackType
from typing import Any, NoReturn

from plaingrad.engine.refusals.blame import blame, can_be_imported, is_engine_frame, name_of, user_frame
from plaingrad.errors import MissingRuleError, PlaingradError

__all__ = ["is_engine_frame", "missing_rule", "name_of", "name_of_object", "refuse"]
__all__ += ["user_frame", "users_frames", "where"]

DOCS = "docs: errors"
ASKING = ("is_", "_is_", "has_", "_has_")  # functions with such names answer a question
NO_NUMBERS = (bool, str, bytes)


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
        line: int | None = at.tb_lineno  # None for an instruction that belongs to no line
        first = at.tb_frame.f_code.co_firstlineno
        following = TracebackType(following, at.tb_frame, at.tb_lasti, first if line is None else line)
    return following


def where() -> str:
    """ "at model.py:41, in `load`": the user's line that is being executed, and the place in a package behind it."""
    found = blame()
    if found is None:
        return "at an unknown place"
    if found.inside is None:
        return f"at {found.users}"
    return f"at {found.users}, inside `{found.called}` ({found.inside.file}:{found.inside.line})"


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


def missing_rule(f: Any, why: str, what: str | None = None) -> NoReturn:
    """Refuse a call of `f`, which has neither a rule nor Python code, or a rule that is not enough.

    Args:
        f: what was called.
        why: a sentence about it, the second line of the message.
        what: what `f` is, where that is not C code.
    """
    name = name_of(f)
    full = quoted(name)
    found = blame()
    what = what or described(f)
    place = "at an unknown place" if found is None else f"at {found.users}"
    if found is None or found.inside is None:
        head = f"{full} {place}, {what}.\n  {why}\n"
        asked = name
    else:
        head = f"`{found.called}` {place}, needs the derivative of {full}, which {what}.\n  {why}\n"
        head += f"  It is called at {found.inside}.\n"
        asked = found.called or ""
    raise MissingRuleError(f"{head}  {advice(f, name, asked, found)}\n  See {DOCS}#missing-rule")


def quoted(name: str) -> str:
    """A callable's full name, between quotes; an object without one by its class."""
    return name if name.startswith("a ") else f"`{name}`"


def described(f: Any) -> str:
    """What `f` is, for a message that says why it has no derivative."""
    # Python code comes here only for what its rule says; proxies made in C look like it.
    if type(f) is FunctionType:
        return "has a rule that does not serve here"
    if isinstance(f, (GeneratorType, CoroutineType, AsyncGeneratorType)):
        return "began outside the differentiated call"
    return "is C code without a derivative rule"


#: Modules whose objects and functions keep numbers as bytes, so that no rule could help, and memoryview.
AS_BYTES = frozenset(
    ("array", "_ctypes", "ctypes", "_struct", "struct", "memoryview", "multiprocessing.sharedctypes")
)


def keeps_bytes(f: Any) -> bool:
    """Whether `f` keeps, or makes, numbers as bytes."""
    t = f if isinstance(f, type) else getattr(f, "__objclass__", None) or type(getattr(f, "__self__", f))
    names = {base.__module__ for base in t.__mro__} | {t.__name__, str(getattr(f, "__module__", ""))}
    return not AS_BYTES.isdisjoint(names)


def advice(f: Any, name: str, asked: str, found: Any) -> str:
    """What to do about `f`, whose full name is `name`: `asked` is the public function that needs a rule."""
    if keeps_bytes(f) and not getattr(f, "argtypes", None):
        return (
            "To go on: keep differentiated numbers in a list, or in an array of NumPy (np.array(numbers)); or, where "
            "only the value matters, give it plaingrad.stop_gradient(x)."
        )
    if returns_no_number(f, name):
        return (
            f"It returns no number, so its derivative does not matter: plaingrad.nondifferentiable({name})."
        )
    if can_be_imported(asked) or found is None:
        rule = f"write a rule, @plaingrad.rrule({asked})"
    else:
        rule = "write a rule for a function of yours that calls it"
        if not found.users.function.startswith("<"):
            rule += f", @plaingrad.rrule({found.users.function})"
    return f"To go on: {rule}; or, where only the value matters, give it plaingrad.stop_gradient(x)."


def returns_no_number(f: Any, name: str) -> bool:
    """Whether a function only answers a question, as far as its annotations and its name tell.

    One that returns None does something else with what it is given: it may keep it.
    """
    notes = getattr(f, "__annotations__", None)
    if isinstance(notes, dict) and "return" in notes:
        answer = notes["return"]
        return any(answer is t or (type(answer) is str and answer == t.__name__) for t in NO_NUMBERS)
    return can_be_imported(name) and name.rsplit(".", 1)[-1].startswith(ASKING)
