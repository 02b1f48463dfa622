"""Which inputs have no influence on a result, and at which lines their chains were cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plaingrad.diagnosis.back import Back, is_zero
from plaingrad.diagnosis.finite import is_array, is_number
from plaingrad.diagnosis.observed import Step
from plaingrad.diagnosis.places import Place
from plaingrad.engine.memory.structure import (
    ArrayNode,
    FloatsNode,
    MappingNode,
    NumberNode,
    ObjectNode,
    SequenceNode,
)

SHOWN = 4  # cuts of one input


@dataclass(frozen=True)
class Cut:
    """A line at which the derivative ends.

    Attributes:
        why: what ends it there, in words.
        name: the operation.
        place: the line.
    """

    why: str
    name: str
    place: Place | None

    def sentence(self) -> str:
        """The line and why it ends there, with the place in a package where one stands between."""
        within = self.place.inside if self.place is not None else None
        return f"{self.place}: {self.why}" + ("" if within is None else f", inside {within}")


@dataclass
class Input:
    """A number or array among the arguments.

    Attributes:
        path: its name.
        influence: "some"; "none": nothing that was made of it is part of the result; "zero": it is, with slope zero.
        cuts: the lines where that comes from.
        unused: no operation was seen on it.
        last: where the last value was made of it, which is not part of the result.
    """

    path: str
    influence: str = "some"
    cuts: list[Cut] = field(default_factory=list)
    unused: bool = False
    last: Place | None = None


def leaves_of(node: Any, path: str, seen: set[int]) -> list[tuple[str, Any]]:
    """(path, node) of the numbers and arrays that a node mirrors."""
    if node is None or id(node) in seen:
        return []
    kind = type(node)
    if kind is NumberNode or isinstance(node, ArrayNode):
        return [(path, node)]
    seen.add(id(node))
    if kind is SequenceNode or kind is FloatsNode:
        entries = [(f"{path}[{k}]", entry) for k, entry in enumerate(node.entries)]
    elif kind is MappingNode:
        entries = [(f"{path}[{key!r}]", entry) for key, entry in node.entries.items()]
    elif kind is ObjectNode:
        entries = [(f"{path}.{name}", entry) for name, entry in node.entries.items()]
    else:
        return []
    return [leaf for name, entry in entries for leaf in leaves_of(entry, name, seen)]


WORDS = {
    "comparison": "it only decides a branch: a comparison has no derivative",
    "text": "it is made into text",
    "write": "it is written into an array of whole numbers",
}


def why_cut(step: Step) -> str | None:
    """Why the derivative ends at a step, in words; None if it does not."""
    if step.kind == "text" and step.consumed:  # the hook hands on what is to be written
        return WORDS["text"]
    if not step.consumed or step.produced:
        return None
    result = step.result
    if step.kind == "write":
        target = step.operands[1] if len(step.operands) > 1 else None
        return WORDS["write"] if is_array(target) and target.dtype.kind in "iub" else None
    if step.kind in ("access", "comparison") and is_about_keys(step):
        return None
    if step.kind in WORDS:
        return WORDS[step.kind]
    short, t = step.name.rpartition(".")[2], type(result)
    if short in ("str", "repr", "format", "print") or issubclass(t, (str, bytes)):
        return WORDS["text"]
    if short == "stop_gradient":
        return "plaingrad.stop_gradient ends it"
    if short in ("max", "min", "maximum", "minimum"):
        return f"`{step.name}` chose another argument"
    if issubclass(t, (bool, np.bool_)) or (is_array(result) and result.dtype.kind == "b"):
        return "a truth value has no derivative"
    if issubclass(t, (int, np.integer)) or (is_array(result) and result.dtype.kind in "iu"):
        return f"`{step.name}` makes a whole number, which changes by jumps only"
    if is_number(result) or issubclass(t, (list, tuple)):
        return f"`{step.name}` has a derivative of zero, or none"
    return None


def is_a_question(step: Step) -> bool:
    """Whether a step only asks whether numbers are finite, as libraries do of all that they are given."""
    return step.name.rpartition(".")[2] in ("isnan", "isfinite", "isinf")


def is_about_keys(step: Step) -> bool:
    """Whether a step asks a container for an entry, or whether it has a key: the numbers in it are not read."""
    if step.kind == "access":
        return not is_number(step.operands[0])
    return step.name == "in" and any(issubclass(type(x), dict) for x in step.operands)


def inputs_of(
    level: Any, named: list[tuple[str, Any]], cuts: list[tuple[Step, str]], back: Back
) -> list[Input]:
    """What became of each input."""
    found = []
    for path, node in named:
        one = Input(path)
        found.append(one)
        gradient = back_of(node, back)
        if node.index in back.reached:
            if not is_zero(gradient):
                continue
            one.influence = "zero"
        else:
            one.influence = "none"
        behind, last = closure(level.tape, node.index)
        if one.influence == "zero":
            add(one, [(step, zero_words(step)) for step, n in back.zeros if n in behind])
        met = [(step, why) for step, why in cuts if not behind.isdisjoint(step.consumed)]
        add(one, [(step, why) for step, why in met if not is_a_question(step)])
        if not one.cuts:
            add(one, met)
        if not one.cuts:
            one.unused = last is None
            one.last = None if last is None else last.place
    return found


def cuts_behind(tape: Any, index: int, cuts: list[tuple[Step, str]]) -> list[Cut]:
    """The lines at which chains from an input end, whether or not others reach the result; branches come last."""
    one = Input("")
    behind, _ = closure(tape, index)
    met = [
        (step, why) for step, why in cuts if not is_a_question(step) and not behind.isdisjoint(step.consumed)
    ]
    add(one, sorted(met, key=lambda cut: cut[1] == WORDS["comparison"]))
    return one.cuts


def back_of(node: Any, back: Back) -> Any:
    """The gradient of a leaf."""
    return back.leaves.get(node.index)


def add(one: Input, found: list[tuple[Step, str]]) -> None:
    """Note cuts, each line once."""
    seen = {(cut.place, cut.why) for cut in one.cuts}
    for step, why in found:
        cut = Cut(why, step.name, step.place)
        if (cut.place, why) not in seen and len(one.cuts) < SHOWN:
            seen.add((cut.place, why))
            one.cuts.append(cut)


def zero_words(step: Step) -> str:
    """Why a cotangent becomes zero at a step."""
    short = step.name.rpartition(".")[2]
    if short == "where":
        return "`where` takes the other argument in every element"
    if short in ("maximum", "minimum", "clip", "max", "min"):
        return f"`{step.name}` takes another argument there"
    if step.kind == "write" or short == "setitem":
        return "what is written there is written over, or is not read"
    return f"`{step.name}` passes back zero: its slope is zero there, or what it passes back cancels"


def closure(tape: Any, index: int) -> tuple[set[int], Step | None]:
    """The indices of what was made of an input, and the last step that made one."""
    behind, last = {index}, None
    for step, (inputs, outputs) in zip(tape.steps, tape.edges, strict=True):
        if not behind.isdisjoint(inputs):
            behind |= set(outputs)
            last = step
    return behind, last
