"""The primal: value, exception and state under each mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.api import jvp, vjp
from plaingrad.testing.case import Case, identities
from plaingrad.testing.states import changes
from plaingrad.testing.structures import random_like, tangent_like
from plaingrad.testing.words import in_short, told


def look_at_primal(case: Case, forward: bool) -> bool:
    """Value, exception and state under each mode; whether there is a derivative to look at."""
    error = case.error
    modes: list[tuple[str, Callable[..., Any]]] = [("under reverse mode", in_reverse)]
    if forward:
        modes.append(("under forward mode", in_forward))
    sound = True
    for mode, runner in modes:
        call, active, seen = case.bound(case.positions)
        y = found = None
        try:
            y = runner(call, active)
        except Exception as raised:
            found = raised
        left = case.after(seen)
        ids = identities(y, seen)
        case.put_back()
        before = len(case.problems)
        if error is not None:
            if found is None:
                case.report("exception", f"a plain call raises {in_short(error)}; {mode} nothing is raised")
            elif type(found) is not type(error) or str(found) != str(error):
                case.report("exception", f"a plain call raises {in_short(error)}; {mode} {in_short(found)}")
        elif found is not None:
            case.report("exception", f"a plain call returns; {mode} it raises {in_short(found)}")
        else:
            case.report_all("primal", [f"{words}, {mode} " for words in case.unlike(y)])
            if ids != case.ids and not (
                case.rule is not None and case.rule.users
            ):  # a rule hands back what is its own
                case.report(
                    "primal",
                    f"what is handed back: {mode} {told(ids)}, by a plain call {told(case.ids)}",
                )
        if case.state:
            case.report_all("state", [f"{mode} {words}" for words in changes(case.left, left)])
        sound = sound and len(case.problems) == before
    return error is None and (sound or found is None)


def in_reverse(call: Callable[..., Any], active: tuple[Any, ...]) -> Any:
    """call(*active) under reverse mode; without a differentiated argument, beside one that is."""
    if active:
        return vjp(call, *active)[0]

    def beside(x: Any) -> Any:
        return call(), x

    return vjp(beside, 1.0)[0][0]


def in_forward(call: Callable[..., Any], active: tuple[Any, ...]) -> Any:
    """call(*active) under forward mode."""
    if active:
        return jvp(call, active, tangent_like(active, lambda leaf: unit_tangent(leaf)))[0]

    def beside(x: Any) -> Any:
        return call(), x

    return jvp(beside, (1.0,), (1.0,))[0][0]


def unit_tangent(x: Any) -> Any:
    """A tangent of ones."""
    return np.ones_like(x) if isinstance(x, np.ndarray) else random_like(np.random.default_rng(0))(x)
