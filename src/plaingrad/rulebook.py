"""The rulebook: callable -> `Rule`. Those who cache decisions watch it, so a rule defined late takes effect at once."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Kind = Literal["scalar", "linear", "bilinear", "full", "composed", "no_tangent", "mover", "higher_order"]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """What is known about one callable.

    Attributes:
        function: the callable the rule is about; for a method, its descriptor (`np.ndarray.sum`).
        kind: how the rule was given; `composed` rules carry a Python definition in `rrule`'s place.
        rrule: `rrule(*args, **kwargs) -> (y, pullback)`; `pullback(y_bar)` has one entry per positional parameter.
        frule: `frule(*args, **kwargs) -> (y, pushforward)`; `pushforward(dots)` takes a tuple with one tangent per
            positional parameter (`ZeroTangent` for one that does not vary) and returns y_dot.
        chunked_frule: the same for tangents that carry a leading axis, one entry for each of a chunk.
        definition: for `composed` rules: the function in terms of simpler ones.
        partials: for `scalar` rules: dz/d(argument), a number or `partial(m, *args, z)`.
        domain: for `scalar` rules: where it is smooth, as a tuple of sample points for each argument.
        mutates: the function writes into its arguments, so it must be seen even when nothing is active.
        source: "file:line" of the row.
        affine: the pushforward depends on the arguments by their shapes, and by the piece of the function that they lie
            on, only: one and the same serves every Taylor coefficient. Always so for `linear` rules.
        own: the rule is plaingrad's own code, which runs natively where no derivative is taken of it.
    """

    function: Any
    kind: Kind
    rrule: Callable[..., tuple[Any, Callable[..., Any]]] | None = None
    frule: Callable[..., tuple[Any, Callable[..., Any]]] | None = None
    chunked_frule: Callable[..., tuple[Any, Callable[..., Any]]] | None = None
    definition: Callable[..., Any] | None = None
    partials: tuple[Any, ...] = ()
    domain: Any = None
    mutates: bool = False
    affine: bool = False
    source: str = ""
    own: bool = False

    def __post_init__(self) -> None:
        module = getattr(self.rrule or self.frule, "__module__", None)
        object.__setattr__(self, "own", isinstance(module, str) and module.startswith("plaingrad."))

    @property
    def gives_derivative(self) -> bool:
        """Whether the rule says how derivatives pass through the function, in one mode at least."""
        return self.rrule is not None or self.frule is not None

    @property
    def name(self) -> str:
        """The callable's name, for messages."""
        return getattr(self.function, "__qualname__", None) or repr(self.function)


class Watcher(Protocol):
    """Somebody who keeps decisions that follow from rules."""

    def rulebook_changed(self) -> None:
        """A rule was added or removed."""


_changes = [0]
_rules: dict[Any, Rule] = {}
_watchers: weakref.WeakSet[Watcher] = weakref.WeakSet()
_lock = threading.RLock()


def add(rule: Rule) -> None:
    """Enter `rule`, replacing an earlier one for the same callable."""
    with _lock:
        _rules[_key(rule.function)] = rule
        _tell()


def remove(function: Any) -> Rule | None:
    """Remove the rule for `function` and return it."""
    with _lock:
        rule = _rules.pop(_key(function), None)
        _tell()
    return rule


def watch(watcher: Watcher) -> None:
    """Tell `watcher`, held weakly, whenever a rule is added or removed."""
    with _lock:
        _watchers.add(watcher)


def changes() -> int:
    """How often a rule was added or removed."""
    return _changes[0]


def _tell() -> None:
    _changes[0] += 1
    for watcher in list(_watchers):
        watcher.rulebook_changed()


def find(function: Any) -> Rule | None:
    """The rule for `function`, or None."""
    return _rules.get(_key(function))


def _key(function: Any) -> Any:
    """What `function` is filed under: itself, or its identity where it cannot be hashed (the rule keeps it alive)."""
    try:
        hash(function)
    except TypeError:
        return "unhashable", id(function)
    return function


def rules() -> Iterator[Rule]:
    """Every rule, in order of definition."""
    return iter(list(_rules.values()))
