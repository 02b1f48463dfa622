"""Which functions are plaingrad's own, and what that says of how a level calls them."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from plaingrad.rewrite import is_rewritten

# Our own Python that must never be rewritten: it *is* the engine. Rules and the reverse pass may be. By prefix.
OWN = ("plaingrad.api", "plaingrad.diagnosis", "plaingrad.engine", "plaingrad.extend", "plaingrad.native")
OWN += ("plaingrad.rewrite", "plaingrad.rulebook", "plaingrad.critical")
OWN += ("plaingrad.class_keys", "plaingrad.copying", "plaingrad.misfits", "plaingrad.rule_data")
OWN += ("plaingrad.rules.processes.transfer",)
REWRITABLE = (
    "plaingrad.api.recorded",
    "plaingrad.engine.batches.forms",
    "plaingrad.engine.communication.forked",
    "plaingrad.engine.memory.tape",
    "plaingrad.engine.memory.memory",
    "plaingrad.engine.memory.structure",
    "plaingrad.engine.fusion.fused",
    "plaingrad.engine.fusion.reverse_in_forward_steps",
    "plaingrad.engine.memory.linear_maps",
    "plaingrad.engine.memory.regions",
    "plaingrad.engine.memory.shapes",
    "plaingrad.engine.memory.compiled_steps",
    "plaingrad.engine.forward.pushing",
    "plaingrad.engine.taylor.series",  # and its pieces
    "plaingrad.engine.taylor.jet_rows",
)


def is_own(f: Any) -> bool:
    """Whether `f` is engine code, which runs as it is."""
    module = getattr(f, "__module__", None)
    return type(module) is str and is_own_module(module)


def is_own_module(module: str) -> bool:
    """Whether the functions of a module are."""
    return module.startswith(OWN) and not module.startswith(REWRITABLE)


def is_immortal(f: FunctionType) -> bool:
    """Whether `f` is a function of one of plaingrad's own modules, which every level calls in the same form."""
    module = f.__module__
    return (
        f.__closure__ is None
        and type(module) is str
        and module.startswith("plaingrad.")
        and "<locals>" not in f.__qualname__
        and not is_rewritten(f.__code__)
    )
