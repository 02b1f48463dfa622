"""Whose line a refusal names: the user's own, the public function that he called there, and the place inside it.

The user's code is what lies neither in the standard library, nor among installed packages, nor in plaingrad. Where all
code is a package's, the innermost line is blamed. Names are those under which a thing can be imported.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from types import BuiltinMethodType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from plaingrad import origin

ENGINE = "plaingrad."
# Files that no one has written: they are made by packages, or by the interpreter.
MADE = re.compile(r"<(frozen |plaingrad |string>|.*generated|decorator-gen|__array_function__|template)")
CONSTRUCTORS = ("__init__", "__new__", "__post_init__")


@dataclass(frozen=True)
class Spot:
    """A line that is being executed."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}, in `{self.function}`"


@dataclass(frozen=True)
class Blame:
    """The user's line, and where a package stands between it and the refusal: what was called, and where inside."""

    users: Spot
    called: str | None = None
    inside: Spot | None = None


def is_engine_frame(frame: FrameType) -> bool:
    """Whether `frame` runs code of this package."""
    return str(frame.f_globals.get("__name__", "")).startswith(ENGINE)


def user_frame() -> FrameType | None:
    """The innermost frame that is not plaingrad's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_engine_frame(frame):
        frame = frame.f_back
    return frame


def blame() -> Blame | None:
    """Who is to be named for what happens now."""
    frame = user_frame()
    inner = frame
    between = []  # frames of packages, the innermost first
    while frame is not None and not is_users(frame):
        if not is_engine_frame(frame):
            between.append(frame)
        frame = frame.f_back
    if inner is None:
        return None
    if frame is None or frame is inner:
        return Blame(spot(inner))
    return Blame(spot(frame), called_name(between), spot(inner, short=True))


def spot(frame: FrameType, short: bool = False) -> Spot:
    """The line that `frame` executes."""
    file = frame.f_code.co_filename
    if short:
        for mark in origin.INSTALLED:
            file = file.rpartition(mark)[2]
    return Spot(file, frame.f_lineno, frame.f_code.co_name)


def is_users(frame: FrameType) -> bool:
    """Whether `frame` runs code that the user has written."""
    if is_engine_frame(frame):
        return False
    file = frame.f_code.co_filename
    if file.startswith("<"):
        at_top = file == "<string>" and frame.f_globals.get("__name__") == "__main__"  # python -c
        return not MADE.match(file) or (at_top and not frame.f_code.co_name.startswith("__"))
    return not origin.is_installed_file(file) and not origin.is_standard_file(file)


# -- names ---------------------------------------------------------------------------------------------------------


def called_name(frames: list[FrameType]) -> str:
    """The public name of what the user called: the outermost of the packages' frames that is not a decorator's."""
    outer = frames[::-1]
    named = (frame for frame in outer if "<" not in frame.f_code.co_qualname)
    frame = next(named, outer[0])
    parts = frame.f_code.co_qualname.split(".<locals>.")[-1].split(".")
    if parts[-1] in CONSTRUCTORS and frame.f_code.co_argcount:
        made = frame.f_locals.get(frame.f_code.co_varnames[0])
        return name_of(made if isinstance(made, type) else type(made))
    module = str(frame.f_globals.get("__name__", ""))
    return public_name(module, parts) or ".".join(parts)


def public_name(module: str, parts: list[str]) -> str | None:
    """The shortest name under which module.parts can be imported; None if it cannot."""
    thing = found_in(module, parts[:1])
    if thing is None or found_in(module, parts) is None:
        return None
    prefix = ""
    for part in module.split("."):
        prefix += part
        if found_in(prefix, parts[:1]) is thing:
            break
        prefix += "."
    if prefix in ("__main__", "builtins"):
        return ".".join(parts)
    if "._" in f".{prefix}":  # a private module: another may have it too
        public = found_anywhere(thing, parts[0])
        return None if public is None else ".".join([public, *parts[1:]])
    return ".".join([prefix, *parts])


def found_in(module: str, parts: list[str]) -> Any:
    """What module.parts is, without running code of the module; None if there is none."""
    thing: Any = sys.modules.get(module)
    for part in parts:
        if isinstance(thing, type):
            thing = next((vars(base)[part] for base in thing.__mro__ if part in vars(base)), None)
        else:
            thing = getattr(thing, "__dict__", {}).get(part)
    return thing


def name_of(f: Any) -> str:
    """A callable's full name, as a user would import it; its own name where it cannot be imported."""
    if isinstance(f, MethodType):
        return name_of(f.__func__)
    name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None)
    if not isinstance(name, str):
        return f"a {name_of(type(f))} object"
    name = name.removeprefix("function ")  # f2py
    owner = getattr(f, "__objclass__", None)
    bound = getattr(f, "__self__", None)
    if owner is None and isinstance(f, BuiltinMethodType) and not isinstance(bound, (ModuleType, type(None))):
        owner = bound if isinstance(bound, type) else type(bound)
    module = getattr(f, "__module__", None)
    if owner is not None and owner.__module__ not in ("builtins", None) and not isinstance(module, str):
        module = owner.__module__
    parts = name.split(".<locals>.")[-1].split(".")
    if module in (None, "builtins") and found_in("builtins", parts) is not None:
        return ".".join(parts)
    if isinstance(module, str) and (public := public_name(module, parts)) is not None:
        return public
    if owner is None and not isinstance(f, FunctionType):
        parts = parts[-1:]  # pybind11 writes the class of its capsules before it
    return found_anywhere(f, parts[-1]) or ".".join(parts)


def found_anywhere(f: Any, name: str) -> str | None:
    """The best name under which an imported module has `f`: public, listed, like its own module, short."""
    own = str(getattr(f, "__module__", "")).rpartition(".")[2].lstrip("_")
    homes = []
    for module, space in list(sys.modules.items()):
        if getattr(space, "__dict__", {}).get(name) is f and not module.startswith(
            ("__main__", "plaingrad.")
        ):
            private = sum(part.startswith("_") for part in module.split("."))
            listed = getattr(space, "__all__", ())
            is_listed = isinstance(listed, (list, tuple)) and name in listed
            homes.append((private, not is_listed, module.rpartition(".")[2] != own, len(module), module))
    return f"{min(homes)[-1]}.{name}" if homes else None


def can_be_imported(name: str) -> bool:
    """Whether a full name leads from an imported module to something."""
    module, parts = name, []
    while "." in module:
        module, _, part = module.rpartition(".")
        parts.insert(0, part)
        if module in sys.modules:
            return found_in(module, parts) is not None
    return False
