"""Which operation of a function has a wrong derivative: the user's rules that it meets, each checked by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plaingrad.copying import deep_copy
from plaingrad.diagnosis.watching import Recorded, Watch
from plaingrad.engine.memory.tape import STEP, RuleStep
from plaingrad.rewrite import PLAIN
from plaingrad.testing.rules import check_rule

MOST = 20  # rules that are checked


def suspects(f: Callable[..., Any], args: tuple[Any, ...], argnums: tuple[int, ...]) -> list[str]:
    """A line for each rule of the user's that `f` meets and that is wrong at the arguments it has there."""
    try:
        recorded = Recorded(f, deep_copy(args), argnums, {}, Watch(), PLAIN)
    except Exception:
        return []
    tape, found, seen = recorded.level.tape, [], set()
    for k, step in enumerate(tape.steps):
        _, index, entry = tape[3 * k : 3 * k + 3]
        if index != STEP or type(entry) is not RuleStep or not entry.rule.users or id(entry.rule) in seen:
            continue
        if step.f is None or len(seen) >= MOST:
            continue
        seen.add(id(entry.rule))
        try:
            check_rule(step.f, *step.operands, second_order=False, chunks=False, state=False)
        except AssertionError as error:
            first = str(error).strip().splitlines()[-1].strip()
            found.append(f"The rule for {step.name}, at {step.place}, is wrong: {first}")
        except Exception:  # it cannot be checked by itself
            continue
    return found
