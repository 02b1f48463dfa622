"""One function at one point, and everything that a check asks of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.api import jvp, vjp
from plaingrad.define import as_callable
from plaingrad.rulebook import Rule
from plaingrad.testing.fitting import largest, near
from plaingrad.testing.states import World, changes, contents
from plaingrad.testing.structures import (
    copied,
    flat,
    inner_path,
    is_container,
    leaves_of,
    parts_of,
    precision_of,
)
from plaingrad.testing.words import first_line, short

EXACT = 1e-9  # what two ways of computing one thing in double precision may differ by, relative to its terms
RETRIES = 20  # plain calls before a result in the last digit of which another call differs counts as wrong
LINES = 4  # of one kind in a report


class Case:
    """One function at one point: what a plain call does there, and what was found wrong with its derivative."""

    def __init__(
        self,
        f: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: int | tuple[int, ...] | None,
        rtol: float,
        atol: float,
        seed: int,
    ) -> None:
        self.rule: Rule | None = rulebook.find_for(f, args)
        self.name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None) or repr(f)
        self.f = as_callable(f)
        if argnums is None:
            positions = tuple(n for n, x in enumerate(args) if any(True for _ in leaves_of(x, "")))
        else:
            positions = argnums if isinstance(argnums, tuple) else (argnums,)
            args = tuple(as_real(x) if n in positions else x for n, x in enumerate(args))
        self.args = args
        self.kwargs = kwargs
        self.positions = positions
        self.active = tuple(args[n] for n in positions)
        self.rtol = rtol
        self.atol = atol
        self.random = np.random.default_rng(seed)
        self.problems: list[str] = []
        self.world = World(f)
        self.put_back = self.world.saved()
        self.y: Any = None  # what a plain call returns
        self.error: BaseException | None = None  # or raises
        self.left: dict[str, Any] = {}  # what is in the arguments and in the world after it
        self.ids: list[str] = []  # which of the arguments it hands back
        self.mutates = False  # it writes into its arguments
        self.changed = False  # it changes something that outlives it
        self.written: Callable[..., list[Any]] = lambda args, kwargs: []
        self.smooth = (
            self.rule is None or self.rule.kind != "no_tangent"
        )  # else the result counts as a constant
        self.state = True  # what is left changed is compared

    def report(self, check: str, words: str) -> None:
        """One line of the report."""
        self.problems.append(f"{check}: {words}")

    def report_all(self, check: str, lines: list[str]) -> None:
        """Several lines of one check; the first ones are enough."""
        for words in lines[:LINES]:
            self.report(check, words)
        if len(lines) > LINES:
            self.report(check, f"and {len(lines) - LINES} more")

    @contextlib.contextmanager
    def part(self, check: str) -> Iterator[None]:
        """A check that may itself fail: then the error is what is reported."""
        try:
            yield
        except Exception as error:
            self.report(check, f"raises {type(error).__name__}: {first_line(error)}")
        finally:
            if self.changed:
                self.put_back()

    def bound(self, positions: tuple[int, ...]) -> tuple[Callable[..., Any], tuple[Any, ...], Any]:
        """A function of some of the arguments, over copies of the others; copies of those; all copies, to look at."""
        if self.changed:
            self.put_back()
        memo: dict[int, Any] = {}
        full: list[Any] = []
        for x in self.args:
            if id(x) not in memo:
                memo[id(x)] = x, copied(x)
            full.append(memo[id(x)][1])
        kwargs = {name: copied(x) for name, x in self.kwargs.items()}
        active = tuple(full[n] for n in positions)
        f = self.f
        if positions == tuple(range(len(full))) and not kwargs:
            return f, active, (full, kwargs)

        def called(*given: Any) -> Any:
            return f(*merged(full, positions, given), **kwargs)

        return called, active, (full, kwargs)

    def plain(self, *active: Any) -> Any:
        """f at other values of the differentiated arguments; the world is put back afterwards."""
        full = [copied(x) for x in self.args]
        for n, x in zip(self.positions, active, strict=True):
            full[n] = x
        if self.changed:
            self.put_back()
        return self.f(*full, **{name: copied(x) for name, x in self.kwargs.items()})

    def after(self, seen: Any) -> dict[str, Any]:
        """What is in the arguments and in the world now."""
        full, kwargs = seen
        found: dict[str, Any] = {}
        for n, x in enumerate(full):
            found.update(contents(x, f"argument {n}"))
        for name, x in kwargs.items():
            found.update(contents(x, f"keyword argument {name}"))
        found.update(self.world.contents())
        return found

    def call_plainly(self) -> None:
        """What a plain call returns or raises, hands back and leaves changed: what all else is compared with."""
        before = self.after(self.bound(())[2])
        call, active, seen = self.bound(self.positions)
        try:
            self.y, self.error = call(*active), None
        except Exception as error:
            self.error = error
        self.left = self.after(seen)
        self.ids = identities(self.y, seen)
        self.put_back()
        places = {words.partition(" is ")[0] for words in changes(before, self.left)}
        own = [place for place in places if place.startswith(("argument ", "keyword argument "))]
        self.mutates = bool(own)
        self.changed = len(own) < len(places)
        numbers = {n for n in range(len(self.args)) if any(is_in(place, f"argument {n}") for place in own)}
        names = {
            name for name in self.kwargs if any(is_in(place, f"keyword argument {name}") for place in own)
        }

        def written(args: Any, kwargs: Any) -> list[Any]:
            return [args[n] for n in sorted(numbers)] + [kwargs[name] for name in sorted(names)]

        self.written = written
        self.given_y = contents(self.y, "the result")
        self.unit = precision_of(self.active, self.y)
        self.exact = max(EXACT, 2e3 * self.unit, 1e-3 * self.rtol)

    def unlike(self, y: Any) -> list[str]:
        """How `y` differs from the result of a plain call; some loops of NumPy round by where memory lies."""
        found = contents(y, "the result")
        words = changes(self.given_y, found)
        for _ in range(RETRIES if words and self.active else 0):
            call, active, _ = self.bound(self.positions)
            if not changes(contents(call(*active), "the result"), found):
                return []
        return [line.replace("a plain call leaves", "a plain call gives") for line in words]

    def pulled(self, y_bar: Any, positions: tuple[int, ...] | None = None) -> tuple[Any, ...]:
        """The gradient for one cotangent, from a run of its own."""
        call, active, _ = self.bound(self.positions if positions is None else positions)
        _, pullback = vjp(call, *active)
        return pullback(copied(y_bar))

    def pushed(self, dots: Any, positions: tuple[int, ...] | None = None) -> Any:
        """The tangent of the result for tangents of the arguments."""
        call, active, _ = self.bound(self.positions if positions is None else positions)
        return jvp(call, active, copied(dots))[1]

    def gradient(self, y_bar: Any) -> Callable[..., Any]:
        """The gradient as a function of the arguments."""
        call, _, _ = self.bound(self.positions)

        def first(*given: Any) -> Any:
            _, pullback = vjp(call, *given)
            return flat(pullback(y_bar), self.active)  # the call may add and delete entries

        return first

    def compare(
        self,
        check: str,
        where: str,
        found: Any,
        expected: Any,
        x: Any,
        words: str,
        terms: tuple[Any, ...] = (),
    ) -> None:
        """Two tangents of `x` that should be equal, up to the rounding of the `terms` that they are sums of."""
        sizes = [
            max((largest(flat(term, x)[k]) for term in terms), default=0.0)
            for k in range(len(flat(found, x)))
        ]
        for p, q, leaf, size in zip(
            flat(found, x), flat(expected, x), leaves_of(x, where), sizes, strict=True
        ):
            if not near(p, q, self.exact, size):
                self.report(check, f"{leaf.path}: {words}: {short(p)} instead of {short(q)}")

    def compare_all(
        self, check: str, found: Any, expected: Any, words: str, terms: tuple[Any, ...] = ()
    ) -> None:
        """Two gradients that should be equal."""
        for k, n in enumerate(self.positions):
            parts = tuple(term[k] for term in terms)
            self.compare(check, f"argument {n}", found[k], expected[k], self.active[k], words, parts)

    def all_zero(self, check: str, bars: Any, why: str) -> None:
        """Every entry of a gradient should be zero."""
        for n, bar, x in zip(self.positions, bars, self.active, strict=True):
            for t, leaf in zip(flat(bar, x), leaves_of(x, f"argument {n}"), strict=True):
                if t is not None and bool(np.any(np.asarray(t) != 0)):
                    self.report(check, f"{leaf.path}: {why}, but the derivative is {short(t)}")


def returning_what_is_written(f: Callable[..., Any], written: Callable[..., list[Any]]) -> Callable[..., Any]:
    """`f`, with the arguments that it changes in place beside its result."""

    def called(*args: Any, **kwargs: Any) -> Any:
        y = f(*args, **kwargs)
        return (y, *written(args, kwargs))

    return called


def is_in(place: str, name: str) -> bool:
    """Whether a place, in words, is that name or inside it."""
    return place == name or place.startswith((name + "[", name + "."))


def merged(full: list[Any], positions: tuple[int, ...], given: tuple[Any, ...]) -> list[Any]:
    """`full` with `given` in some places."""
    new = list(full)
    for k, n in enumerate(positions):
        new[n] = given[k]
    return new


def as_real(x: Any) -> Any:
    """An int as a real number."""
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        return float(x)
    if isinstance(x, np.ndarray) and x.dtype.kind in "iu":
        return x.astype(float)
    return x


def identities(y: Any, seen: Any) -> list[str]:
    """Which arrays and containers in the result are those of the arguments."""
    full, kwargs = seen
    known: dict[int, str] = {}

    def note(x: Any, path: str, depth: int) -> None:
        if depth > 8 or id(x) in known:
            return
        if isinstance(x, np.ndarray) or (is_container(x) and type(x) is not tuple):
            known[id(x)] = path
        if is_container(x) and len(known) < 1000:
            for key, value in parts_of(x):
                note(value, inner_path(x, key, path), depth + 1)

    for n, x in enumerate(full):
        note(x, f"argument {n}", 0)
    for name, x in kwargs.items():
        note(x, f"keyword argument {name}", 0)
    found: list[str] = []
    passed: set[int] = set()

    def look(x: Any, path: str, depth: int) -> None:
        if depth > 8 or id(x) in passed:
            return
        if isinstance(x, np.ndarray) or is_container(x):
            passed.add(id(x))
            if id(x) in known:
                found.append(f"{path} is {known[id(x)]}")
        if is_container(x) and len(passed) < 1000:
            for key, value in parts_of(x):
                look(value, inner_path(x, key, path), depth + 1)

    look(y, "the result", 0)
    return found
