"""Every rule, as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, NamedTuple, overload

from plaingrad import rulebook
from plaingrad.errors import ArgumentError
from plaingrad.rulebook import Rule
from plaingrad.tables import aligned, as_html

SHOWN = 40  # rows that `repr` shows

MEANING = {
    "scalar": "partial derivatives",
    "linear": "linear",
    "bilinear": "bilinear",
    "full": "rule",
    "composed": "composed",
    "no_tangent": "no tangent",
    "mover": "moves references",
    "inspector": "moves references, compares or hashes them",
    "higher_order": "calls its argument",
    "outside": "one level out",
    "asks": "asks about its argument",
    "withdrawn": "none",
}


class RuleInfo(NamedTuple):
    """One rule.

    Attributes:
        function: the callable that it is for.
        kind: how it was given: `scalar`, `linear`, `bilinear`, `full`, `composed`, `no_tangent`, `mover`,
            `inspector`, `higher_order`, `outside` (its results are constants) or `asks`.
        modes: the modes that it was written for; the others are derived from these.
        source: "file:line".
        domain: for `scalar` rules, sample points where it is smooth, a tuple for each argument.
        types: the arguments that it is for, as text, and the set of `primitives` in which it holds; empty: any.
    """

    function: Any
    kind: str
    modes: tuple[str, ...]
    source: str
    domain: Any
    types: str


class RuleTable(Sequence[RuleInfo]):
    """Rules in order of definition. `repr` shows the last ones, `str` all."""

    def __init__(self, rows: Sequence[RuleInfo]) -> None:
        self.rows = tuple(rows)

    @overload
    def __getitem__(self, k: int) -> RuleInfo: ...
    @overload
    def __getitem__(self, k: slice) -> RuleTable: ...
    def __getitem__(self, k: Any) -> Any:
        return RuleTable(self.rows[k]) if isinstance(k, slice) else self.rows[k]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        more = len(self.rows) - SHOWN
        text = _table(self.rows[-SHOWN:])
        return f"... {more} more\n{text}" if more > 0 else text

    def __str__(self) -> str:
        return _table(self.rows)

    def _repr_html_(self) -> str:
        """The last rows, for notebooks."""
        more = len(self.rows) - SHOWN
        said = f"<caption>the last {SHOWN} of {len(self.rows)} rules</caption>" if more > 0 else ""
        return as_html(_cells(self.rows[-SHOWN:]), said)


def rules(f: Callable[..., Any] | None = None) -> RuleTable:
    """Every rule, plaingrad's own and those of the program; with `f` those for that function.

    Raises:
        ArgumentError: `f` is no function.

    Examples:
        >>> import math, plaingrad
        >>> print(plaingrad.rules(math.erf))  # doctest: +ELLIPSIS
        function  given as             for  modes             source
        math.erf  partial derivatives  any  reverse, forward  elementwise.py:...
        >>> plaingrad.rules(math.erf)[0].domain
        ((-2.3, -0.7, 0.4, 1.9),)
        >>> len(plaingrad.rules()) > 1000
        True
    """
    if f is not None and not callable(f):
        raise ArgumentError(
            f"rules takes a function, not {f!r}.\n"
            "  To go on: rules(math.sin), with the function itself, or rules() for all of them.\n"
            "  See docs: errors#argument"
        )
    return RuleTable([_info(rule) for rule in _entries(f)])


def _entries(f: Any) -> Iterator[Rule]:
    if f is None:
        found: Any = rulebook.rules()
    else:
        one = rulebook.find(getattr(f, "__func__", f))
        found = () if one is None else (one,)
    for rule in found:
        if type(rule.function) is not FunctionType or not hasattr(rule.function, "updating"):
            yield from rule.variants or (rule,)


def _info(rule: Rule) -> RuleInfo:
    updating = getattr(rule.definition, "updating", None)
    halves = rule if updating is None else rulebook.find(updating.updated) or rule
    modes: tuple[str, ...] = ()
    if halves.kind == "full":
        modes = (*["reverse"] * (halves.rrule is not None), *["forward"] * (halves.frule is not None))
    elif halves.kind in ("scalar", "linear", "bilinear", "composed"):
        modes = "reverse", "forward"  # one row says both
    types = "" if rule.types is None else rule.types.text
    if rule.context is not None:
        types = f"{types or 'any'} in {rule.context.name or 'a set'}"
    return RuleInfo(rule.function, rule.kind, modes, rule.source, rule.domain, types)


def _table(rows: Sequence[RuleInfo]) -> str:
    return aligned(_cells(rows))


def _cells(rows: Sequence[RuleInfo]) -> list[tuple[str, ...]]:
    cells = [("function", "given as", "for", "modes", "source")]
    for row in rows:
        cells.append(
            (
                full_name(row.function),
                MEANING[row.kind],
                row.types or "any",
                ", ".join(row.modes),
                row.source.rsplit("/", 1)[-1],
            )
        )
    return cells


def full_name(function: Any) -> str:
    """The name by which a user knows `function`."""
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or repr(function)
    owner = getattr(function, "__objclass__", None)
    module = getattr(function, "__module__", None) or getattr(owner, "__module__", None) or ""
    if module == "" and type(function).__module__ == "numpy":
        module = "numpy"
    return name if module in ("", "builtins", "__main__") else f"{module.removeprefix('_')}.{name}"
