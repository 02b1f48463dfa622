"""What a wrong gradient comes from: a rule that is wrong where it is met, a line that cuts, a function that changes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from plaingrad.copying import deep_copy
from plaingrad.diagnosis.influence import Cut, cuts_behind, leaves_of
from plaingrad.diagnosis.observed import Step
from plaingrad.diagnosis.watching import Recorded, Watch
from plaingrad.engine.memory.tape import STEP, RuleStep
from plaingrad.rewrite import PLAIN
from plaingrad.testing.rules import check_rule

MOST = 20  # rules that are checked


def suspects(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    argnums: tuple[int, ...],
    wrong: Collection[str] = (),
) -> list[str]:
    """Sentences that say which operations of `f` a wrong gradient may come from, as far as that can be seen.

    Args:
        f: the function.
        args: its arguments.
        argnums: the positions of those that were differentiated.
        wrong: the paths of the numbers and arrays with a wrong gradient (`argument 0.weights`); none: not known.
    """
    watch = Watch()
    try:
        recorded = Recorded(f, deep_copy(args), argnums, {}, watch, PLAIN)
        again = f(*deep_copy(args))
    except Exception:
        return []
    if are_different(recorded.value, again):
        return [
            "It does not return the same when it is called twice with the same arguments, so differences mean nothing."
        ]
    found = wrong_rules(recorded.level.tape)
    if found:
        return found
    pairs = zip(argnums, recorded.nodes, strict=True)
    leaves = [leaf for n, node in pairs for leaf in leaves_of(node, f"argument {n}", set())]
    chosen = [leaf for leaf in leaves if leaf[0] in wrong] or leaves
    cuts: dict[Cut, None] = {}
    for _, node in chosen[:MOST]:
        cuts.update(dict.fromkeys(cuts_behind(recorded.level.tape, node.index, watch.cuts)))
    return [f"It may come from here: {cut.sentence()}" for cut in cuts][:MOST]


def are_different(x: Any, y: Any) -> bool:
    """Whether two results are surely not the same."""
    try:
        return not np.array_equal(np.asarray(x, float), np.asarray(y, float), equal_nan=True)
    except (TypeError, ValueError):  # structures, whose parts are not compared
        return False


def wrong_rules(tape: Any) -> list[str]:
    """A sentence for each rule on a tape that is wrong at the arguments it has there; the user's come first."""
    met: dict[int, tuple[bool, Step, Any]] = {}
    for k, step in enumerate(tape.steps):
        _, index, entry = tape[3 * k : 3 * k + 3]
        if index == STEP and type(entry) is RuleStep and step.f is not None:
            met.setdefault(id(entry.rule), (not entry.rule.users, step, entry.rule))
    found = []
    for own, step, _ in sorted(met.values(), key=lambda one: one[0])[:MOST]:
        try:
            check_rule(step.f, *step.operands, second_order=False, chunks=False, state=False)
        except AssertionError as error:
            first = str(error).strip().splitlines()[-1].strip()
            what = "is not what differences say" if own else "is wrong"
            found.append(f"The rule for {step.name}, at {step.place}, {what}: {first}")
        except Exception:  # it cannot be checked by itself
            continue
    return found
