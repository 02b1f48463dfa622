"""Why a function is not differentiated natively: all constructs in the way, on either route."""

from __future__ import annotations

import ast
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

from plaingrad.errors import PlaingradError
from plaingrad.native.border.conversion import opened
from plaingrad.native.border.obstacles import Obstacle, Obstacles, of_error, of_numbers, text_at
from plaingrad.native.objects.call import Call, Flat, attempts, call_of, followed
from plaingrad.native.objects.values import UNKNOWN, Refused
from plaingrad.native.program.dispatchers import python_function

LONGEST = 100  # characters of an expression
ADVICE = (  # (words in what is refused, what to do)
    ("that may have a second name", "change an object made inside, or return a new one"),
    ("which may change", "pass it as an argument, or make it a tuple"),
    ("from outside the function, is an object", "pass it as an argument"),
    ("from outside the function, is assigned", "return the value"),
    ("has a key that is not known", "use keys that are written there, or a list"),
    ("is indexed by what is not known", "use a list of entries that are alike, or constant indices"),
    ("calls itself", "write a loop"),
    ("`try`", "test for what may go wrong before it does"),
    ("`with`", "do without it in what is differentiated"),
    ("in a generator", "return a list"),
    ("is a generator", "return a list"),
    ("over a generator", "return a list"),
    ("an iterator", "make a list of it"),
    ("`else` of a loop", "use a variable that says how the loop ended"),
    ("a set", "use a tuple or a list"),
    ("text made of values", "make the text outside of what is differentiated"),
    ("the source of", "put the function into a file"),
    ("depending on which way is taken", "give it the same structure on all ways"),
    ("of several kinds", "give all entries the same structure"),
    ("`sorted` of", "sort arrays with np.sort, or at most 8 objects"),
    ("a class defined inside", "define the class outside of the function"),
    ("a decorated function", "define the function without a decorator, or outside"),
    ("rule of its own", "use tier='plain', which goes by the rule"),
)
OTHERWISE = "write it in another way (numbers, arrays, plain classes, lists), or use tier='plain'"


def why_not(f: Any, args: tuple[Any, ...], positions: tuple[int, ...], kwargs: dict[str, Any]) -> Obstacles:
    """All that stands in the way of a native gradient of f(*args); nothing where there is one. It is not called."""
    direct = of_numbers(f, args, positions, kwargs)
    function = opened(f)[0]
    if not direct or not isinstance(python_function(function), FunctionType):
        return Obstacles(direct)
    try:
        call = call_of(f, args, positions, kwargs)
    except PlaingradError as error:
        return Obstacles([*direct, of_error(function, error)])
    ways = []
    for way in attempts(call):
        if way[1].results is not None and not of_flat(*way):
            return Obstacles()
        ways.append(way)
    call, found = ways[-1]
    if found.results is None:
        found = followed(call, True)
    if found.results is None:
        why, file, line, name = found.refusal
        return Obstacles([*direct, Obstacle(file, line, name, text_at(file, line), why, fix_for(why))])
    met = [as_obstacle(error, node) for error, node in found.whole.obstacles or ()]
    met += of_flat(call, found)
    return Obstacles(sorted(dict.fromkeys(met), key=lambda x: (x.file, x.line)))


def of_flat(call: Call, found: Flat) -> list[Obstacle]:
    """What stands in the way of the function of numbers and arrays that was made."""
    known = ""
    if found.whole.obstacles:
        known = UNKNOWN.name
        found.results.__globals__[known] = ModuleType(known)  # has a type, with which nothing can be done
    met = of_numbers(found.results, call.leaves, call.positions, {}, known)
    return [replace(x, function=found.whole.users_name(x.function)) for x in met]


def as_obstacle(error: Refused, node: ast.AST) -> Obstacle:
    """What was refused at a node."""
    why, file, line, name = error.args
    if getattr(node, "lineno", line) <= line <= (getattr(node, "end_lineno", None) or line):
        text = ast.unparse(node).splitlines()[0]
    else:
        text = text_at(file, line)
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
    return Obstacle(file, line, name, text, why, fix_for(why))


def fix_for(why: str) -> str:
    """What to do about it."""
    return next((fix for words, fix in ADVICE if words in why), OTHERWISE)


__all__ = ["why_not"]
