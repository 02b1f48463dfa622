"""The hooks that run most, compiled, where the extension was built: what `core` has, else None.

In come a level, its call decision and the tables of adopted classes; out go hooks with the results of the Python forms.
Called when a level opens. `PLAINGRAD_COMPILED=0` in the environment leaves the extension alone.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from plaingrad.rewrite.evaluation import make_with
from plaingrad.rewrite.hooks import EXPRESSIONS, HOOKED

VERSION = 23  # of what the two sides expect of each other


def _load() -> tuple[Any, str]:
    """The extension, or None and why."""
    if os.environ.get("PLAINGRAD_COMPILED") == "0":
        return None, "PLAINGRAD_COMPILED=0 is set"
    try:
        found = importlib.import_module("plaingrad.engine.compiled._core")
    except ImportError as error:
        if error.name == "plaingrad.engine.compiled._core":
            import sysconfig

            if sysconfig.get_config_var("Py_GIL_DISABLED"):
                return None, "a free-threaded CPython has no compiled core yet"
            return None, "the extension was not built (a C compiler is needed when plaingrad is installed)"
        return None, f"the extension cannot be loaded ({error})"
    if getattr(found, "VERSION", 0) != VERSION:
        return None, "the extension was built from another version of plaingrad; install it again"
    return found, ""


core, WHY_NOT = _load()
if core is not None:
    make_with(core.Expression)

#: The form of code that is rewritten once for whatever level it runs at.
FOR_ANY_LEVEL = HOOKED if core is None else EXPRESSIONS


def is_ours(f: Any) -> bool:
    """Whether `f` is a hook, or what a compiled hook gave to be called: it runs as it is."""
    return core is not None and (type(getattr(f, "__self__", None)) in core.OURS or f is core.kind_of)
