"""`explain`: where a derivative becomes nan or infinite, and which inputs have no influence, line by line."""

from __future__ import annotations

import functools
import html
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from plaingrad.api.leaves import Argnums, active_positions, check_callable, positions_in, positions_of
from plaingrad.diagnosis.back import Event, pulled
from plaingrad.diagnosis.finite import bad_in, is_number
from plaingrad.diagnosis.hints import hint_of
from plaingrad.diagnosis.influence import Input, inputs_of, leaves_of
from plaingrad.diagnosis.looking import looked_at
from plaingrad.diagnosis.places import Place
from plaingrad.diagnosis.watching import Recorded, Watch
from plaingrad.engine.forward.push import push
from plaingrad.errors import ArgumentError
from plaingrad.rewrite import CURRENT, PLAIN
from plaingrad.tangents import Tangent, ZeroTangent


@dataclass
class Explanation:
    """What `explain` has found.

    Attributes:
        name: of the function.
        value: what it returned.
        gradients: of the arguments that were differentiated (with a cotangent of 1 for each number of the value); in
            forward mode the tangent of the value.
        events: values, tangents and cotangents that became nan or infinite, the causes only, in the order in which
            that happened.
        inputs: the numbers and arrays among the arguments, with what became of them; in reverse mode.
        hint: what a cotangent that is not finite comes from, the first for which it is a known pattern.
        hinted: that cotangent; None where there is none.
        warnings: what NumPy would have warned of in the reverse pass, which the engine keeps quiet.
        notes: what should be known besides.
    """

    name: str
    value: Any
    gradients: Any
    events: list[Event] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)
    hint: str = ""
    hinted: Event | None = None
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def first(self) -> Event | None:
        """The first event; None where everything is finite."""
        return self.events[0] if self.events else None

    @property
    def place(self) -> Place | None:
        """The line of the first event."""
        return None if self.first is None else self.first.place

    @property
    def without_influence(self) -> list[Input]:
        """The inputs whose gradient is zero."""
        return [one for one in self.inputs if one.influence != "some"]

    def lines(self) -> list[tuple[str, str]]:
        """(kind of line, text)."""
        made = [("head", self._summary())]
        shown: set[str] = set()
        for event in self.events:
            if event.what in shown and event is not self.hinted:
                continue
            shown.add(event.what)
            made.append(("place", str(event.place) if event.place else "the cotangent that was given"))
            if event.place is not None and event.place.inside is not None:
                made.append(("text", f"inside {event.place.inside}"))
            made.append(("text", event.sentence() + self._whether_constant(event)))
            if event is self.hinted:
                made.append(("hint", self.hint))
        made += self._lines_of_inputs()
        made += [("note", note) for note in self.notes]
        return made

    def _lines_of_inputs(self) -> list[tuple[str, str]]:
        """The inputs without influence; those that follow on one another for the same reasons in one line."""
        groups: list[tuple[str, dict[str, None], list[str]]] = []
        for one in self.without_influence:
            why = dict.fromkeys([cut.sentence() for cut in one.cuts] or [self._without_a_cut(one)])
            if groups and groups[-1][:2] == (one.influence, why):
                groups[-1][2].append(one.path)
            else:
                groups.append((one.influence, why, [one.path]))
        made: list[tuple[str, str]] = []
        for influence, why, paths in groups:
            named = paths[0] if len(paths) == 1 else f"{paths[0]} to {paths[-1]}, {len(paths)} inputs"
            made.append(("place", f"{named}: {(WORDS if len(paths) == 1 else WORDS_OF_MANY)[influence]}"))
            made += [("text", text) for text in why]
        return made

    def _whether_constant(self, event: Event) -> str:
        return "" if event.what != "value" or event.step.produced else " (it does not depend on the inputs)"

    def _without_a_cut(self, one: Input) -> str:
        if one.influence == "zero":
            return "the terms of its gradient add up to zero, or which slope is zero could not be seen"
        if one.unused:
            return "no operation on it was seen: it is not used, or only passed on"
        return f"what was made of it last, at {one.last}, is not part of the result"

    def _summary(self) -> str:
        if not self.events:
            text = (
                "all values and cotangents are finite"
                if self.inputs
                else "all values and tangents are finite"
            )
        else:
            bad = [
                what for what, x in (("value", self.value), ("derivative", self.gradients)) if bad_inside(x)
            ]
            text = (
                f"not finite: {' and '.join(bad)}"
                if bad
                else "value and derivative are finite, a step is not"
            )
        count = len(self.without_influence)
        if count:
            text += f"; {count} of {len(self.inputs)} inputs without influence"
        return f"{self.name}: {text}"

    def __repr__(self) -> str:
        margins = {"head": "", "place": "  ", "text": "      ", "hint": "      ", "note": "  "}
        return "\n".join(margins[kind] + text for kind, text in self.lines())

    def _repr_html_(self) -> str:
        rows = [f'<div class="{kind}">{html.escape(text)}</div>' for kind, text in self.lines()]
        style = (
            "<style>.plaingrad{font-family:monospace;white-space:pre-wrap}.plaingrad .head{font-weight:bold}"
            ".plaingrad .place{padding-left:1em}.plaingrad .text,.plaingrad .hint{padding-left:3em}</style>"
        )
        return f'{style}<div class="plaingrad">{"".join(rows)}</div>'

    def as_json(self) -> dict[str, Any]:
        """The same in dictionaries and lists."""
        return {
            "function": self.name,
            "summary": self._summary(),
            "events": [
                {"what": event.what, "becomes": event.bad.word, "index": list(event.bad.index),
                 "operation": event.step.name, "text": event.sentence(), "place": place_json(event.place)}
                for event in self.events
            ],
            "hint": self.hint,
            "inputs": [
                {"path": one.path, "influence": one.influence,
                 "cuts": [{"why": cut.why, "place": place_json(cut.place)} for cut in one.cuts]}
                for one in self.inputs
            ],
            "warnings": self.warnings,
            "notes": self.notes,
        }  # fmt: skip


WORDS = {"none": "has no influence on the result", "zero": "its gradient is zero"}
WORDS_OF_MANY = {"none": "have no influence on the result", "zero": "their gradients are zero"}


def place_json(place: Place | None) -> Any:
    """A place in a dictionary."""
    if place is None:
        return None
    return {
        "file": place.file,
        "line": place.line,
        "function": place.function,
        "expression": place.expression,
        "inside": place_json(place.inside),
    }


def explain(
    f: Callable[..., Any],
    *args: Any,
    argnums: Argnums | None = None,
    mode: Literal["reverse", "forward"] = "reverse",
    **kwargs: Any,
) -> Explanation:
    """Where a derivative of `f` becomes nan or infinite, and which arguments have no influence on the result.

    `f` is called once, in the plain tier, and every operation of it looked at, so it takes some hundred times as long
    as a plain call, and about a kilobyte an operation.

    Args:
        f: a function; a function that Numba has compiled is run as the Python function that it was.
        args: its arguments.
        argnums: which of them to differentiate; by default all that have a tangent, but for ints, which mostly count.
        mode: "reverse" looks at cotangents (for a cotangent of 1 of each number of the result), and at influence;
            "forward" at tangents, where each number among the arguments has the tangent 1.
        kwargs: its arguments by keyword.

    Returns:
        An object that prints what was found; its attributes have the same as data: `events`, `inputs`, `hint`,
        `warnings` (those of NumPy in the reverse pass, which the engine keeps quiet).

    Raises:
        ArgumentError: no argument has a tangent, or a derivative is being taken around this call.

    Examples:
        >>> import numpy as np
        >>> def loss(x): return np.where(x > 0.0, np.sqrt(x), 0.0).sum()
        >>> explain(loss, np.array([4.0, 0.0])).first.what
        'cotangent'
    """
    check_callable(f, "explain")
    if CURRENT.get() is not PLAIN:
        raise ArgumentError(
            "explain is called inside of a derivative.\n  To go on: explain the function itself."
        )
    active = chosen_positions(args, argnums)
    name = shown_name(f)
    notes = []
    if getattr(f, "py_func", None) is not None:
        notes.append("Compiled by Numba: explained by running its Python source in the plain tier.")
    if mode == "forward":
        return explained_forward(f, args, active, kwargs, name, notes)
    return explained_backward(f, args, active, kwargs, name, notes)


def chosen_positions(args: tuple[Any, ...], argnums: Argnums | None) -> tuple[int, ...]:
    """The positions of the arguments to differentiate."""
    if argnums is not None:
        return positions_in(positions_of(argnums), args)
    active = active_positions(args)
    if not active:
        raise ArgumentError(
            "there is no argument that holds a real or complex number, to differentiate.\n  See docs: errors#argument"
        )
    return tuple([n for n in active if not isinstance(args[n], int)]) or active


def explained_backward(
    f: Any, args: Any, active: Any, kwargs: Any, name: str, notes: list[str]
) -> Explanation:
    """`explain` by cotangents."""
    watch = Watch()
    recorded = Recorded(f, args, active, kwargs, watch, PLAIN)
    names = names_of(f, args)
    named = [leaf for n, node in zip(active, recorded.nodes) for leaf in leaves_of(node, names[n], set())]
    level = recorded.level
    back = pulled(level, recorded.slots, None, recorded.nodes, [node for _, node in named])
    return Explanation(
        name,
        recorded.value,
        back.gradients,
        watch.events + back.events,
        inputs_of(level, named, watch.cuts, back),
        *hint_of(back, level.tape),
        [f"{kind}: {step.place if step else 'at the seed'}" for kind, step in back.warnings],
        notes,
    )


def explained_forward(
    f: Any, args: Any, active: Any, kwargs: Any, name: str, notes: list[str]
) -> Explanation:
    """`explain` by tangents."""
    watch = Watch()
    dots = tuple([ones_like(x) if n in active else ZeroTangent for n, x in enumerate(args)])
    with looked_at(watch):
        value, y_dot = push(f, args, dots, kwargs)
    return Explanation(name, value, y_dot, watch.events, notes=notes)


def ones_like(x: Any) -> Any:
    """A tangent of 1 for each number in `x`."""
    if isinstance(x, np.ndarray):
        return np.ones_like(x) if x.dtype.kind in "fc" else None
    if is_number(x):
        return 1.0
    if isinstance(x, (list, tuple)):
        parts = [ones_like(part) for part in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if isinstance(x, dict):
        return {key: ones_like(part) for key, part in x.items()}
    if hasattr(x, "__dict__"):
        return Tangent(type(x), {key: ones_like(part) for key, part in vars(x).items()})
    return None


def shown_name(f: Any) -> str:
    """What a function is called in a report: of a partial one the function that it is made of."""
    if isinstance(f, functools.partial):
        return f"partial({shown_name(f.func)})"
    return getattr(f, "__qualname__", None) or repr(f)


def names_of(f: Any, args: tuple[Any, ...]) -> list[str]:
    """The names of positional arguments."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters if p.kind in positional]
    return [names[n] if n < len(names) else f"argument {n}" for n in range(len(args))]


def bad_inside(x: Any) -> bool:
    """Whether a number in a structure is not finite."""
    if isinstance(x, dict):
        return any(map(bad_inside, x.values()))
    if isinstance(x, (list, tuple)):
        return any(map(bad_inside, x))
    if (fields := getattr(x, "fields", None)) is not None and isinstance(fields, dict):
        return any(map(bad_inside, fields.values()))
    return bad_in(x) is not None
