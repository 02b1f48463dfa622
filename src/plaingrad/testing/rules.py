"""`check_rule`: everything that is promised of a derivative, looked at for one function at one point."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.api import vjp
from plaingrad.define import as_callable
from plaingrad.engine.inputs import entries_of
from plaingrad.engine.kinds import MAPPING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.engine.push import push
from plaingrad.rulebook import Rule
from plaingrad.tangents import NoTangent, Tangent, Thunk, ZeroTangent, is_zero, project, unthunk
from plaingrad.testing.differences import Estimate, along, by_mpmath, complex_step, widened
from plaingrad.testing.states import World, changes, contents
from plaingrad.testing.structures import (
    as_number,
    combined,
    copied,
    flat,
    inner,
    inner_path,
    is_container,
    is_leaf,
    leaf_inner,
    leaves_of,
    magnitude,
    mapped,
    precision_of,
    random_like,
    tangent_like,
    wide,
)

try:  # until the public name is there
    from plaingrad.api import jvp
except ImportError:

    def jvp(f: Any, primals: Any, tangents: Any) -> Any:
        """(y, y_dot)."""
        return push(f, primals, tangents, {})


EXACT = 1e-9  # what two ways of computing one thing in double precision may differ by, relative to their terms
FEW = 4  # numbers in an argument that are moved one at a time; more are moved together, along random directions
NAMED = 48  # entries that are looked at one by one to name the wrong ones
RETRIES = 20  # plain calls before a result in the last digit of which another call differs counts as wrong
LINES = 4  # of one kind in a report


def check_rule(
    f: Any,
    *args: Any,
    argnums: int | tuple[int, ...] | None = None,
    rtol: float = 1e-6,
    atol: float = 0.0,
    seed: int = 0,
    state: bool = True,
    differences: bool = True,
    forward: bool = True,
    second_order: bool = True,
    chunks: bool = True,
    accumulation: bool = True,
    kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> None:
    """Check every promise that plaingrad makes of the derivative of `f`, at these arguments.

    `f` is any callable, with a rule or without one; or a computed attribute (`complex.real`). Looked at are:

    - the primal: value, type and identity of the result are those of a plain call, in every mode; an exception is the
      same exception; arguments, globals, closures, defaults and random generators are left as a plain call leaves them;
    - the rule alone, if there is one, in both directions: one cotangent an argument, of a type and shape that fit it;
      `NoTangent` only where there is no tangent space and `ZeroTangent` only where there is one; linear; the same when
      called again; nothing captured, given or returned earlier is changed; `Thunk`s that are computed at most once, in
      any order;
    - the gradient: its exact types, shapes and dtypes; linear; the same for a postponed cotangent (a `Thunk`), for one
      output at a time, and for one argument at a time; in memory of its own; accumulated where `f` is called twice, and
      where one value is passed as two arguments;
    - its numbers: against central differences at many steps, extrapolated; against the complex step or mpmath where
      rounding blinds differences; and against forward mode, <y_bar, y_dot> = <x_bar, x_dot>;
    - chunks of tangents against one tangent at a time;
    - second derivatives: reverse over reverse and forward over reverse against differences of the gradient.

    Args:
        f: the function.
        *args: its positional arguments. Those that hold real or complex numbers or arrays are differentiated.
        argnums: the positions to differentiate, if not all of those; an int there is taken as a real number.
        rtol: relative tolerance of the differences.
        atol: absolute tolerance of the differences, beyond the rounding that is to be expected of them.
        seed: of the random tangents and cotangents.
        state: compare what is left changed.
        differences: compare with differences.
        forward: look at forward mode.
        second_order: look at second derivatives.
        chunks: look at chunks of tangents.
        accumulation: look at values that are used twice.
        kwargs: keyword arguments of `f` that have the name of one of these options.
        **options: keyword arguments of `f`.

    Raises:
        AssertionError: something is wrong. Each line of the message says which check failed, where, and the numbers.

    Examples:
        >>> import math
        >>> check_rule(math.hypot, 3.0, 4.0)
        >>> import numpy as np
        >>> check_rule(np.sum, np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    """
    examination = Examination(f, args, {**options, **(kwargs or {})}, argnums, rtol, atol, seed)
    problems = examination.run(state, differences, forward, second_order, chunks, accumulation)
    if problems:
        what = "rule for" if examination.rule is not None else "derivative of"
        raise AssertionError(f"the {what} {examination.name} is wrong:\n  " + "\n  ".join(problems))


class Examination:
    """One function at one point; `problems` are found by its methods, one for each promise."""

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
        self.rule: Rule | None = rulebook.find(f)
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
        self.changed = False  # a plain call changes something that outlives it
        self.y: Any = None

    # -- helpers -----------------------------------------------------------------------------------------------------

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

    # -- the whole ---------------------------------------------------------------------------------------------------

    def run(
        self,
        state: bool,
        differences: bool,
        forward: bool,
        second_order: bool,
        chunks: bool,
        accumulation: bool,
    ) -> list[str]:
        """Every check that is asked for; the lines of the report."""
        self.state = state
        self.call_plainly()
        rule = self.rule
        if rule is not None and rule.kind not in ("no_tangent", "mover", "higher_order", "composed"):
            if rule.kind != "scalar" or not self.kwargs:
                self.look_at_rrule(rule)
                if forward:
                    self.look_at_frule(rule)
        if any(any(True for _ in leaves_of(x, "")) for x in self.written(self.args, self.kwargs)):
            self.f = returning_what_is_written(self.f, self.written)  # its derivative is looked at too
            self.call_plainly()
        if not self.look_at_primal(forward):
            return self.problems
        if not self.active:
            return self.problems
        self.smooth = rule is None or rule.kind != "no_tangent"  # else the result counts as a constant
        made = self.look_at_gradient()
        if made is None:
            return self.problems
        y_bar, bars = made
        if differences and self.smooth:
            with self.part("differences"):
                self.look_at_differences(y_bar, bars)
        if accumulation:
            self.look_at_accumulation(y_bar, bars)
        if forward:
            self.look_at_modes(y_bar, bars, chunks)
        if second_order:
            self.look_at_second_order(y_bar, forward, differences and self.smooth)
        return self.problems

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
        names = {name for name in self.kwargs if any(is_in(place, f"keyword argument {name}") for place in own)}

        def written(args: Any, kwargs: Any) -> list[Any]:
            return [args[n] for n in sorted(numbers)] + [kwargs[name] for name in sorted(names)]

        self.written = written
        self.given_y = contents(self.y, "the result")
        self.unit = precision_of(self.active, self.y)
        self.exact = max(EXACT, 2e3 * self.unit)

    # -- the primal --------------------------------------------------------------------------------------------------

    def look_at_primal(self, forward: bool) -> bool:
        """Value, exception and state under each mode; whether there is a derivative to look at."""
        error = self.error
        modes: list[tuple[str, Callable[..., Any]]] = [("under reverse mode", in_reverse)]
        if forward:
            modes.append(("under forward mode", in_forward))
        sound = True
        for mode, runner in modes:
            call, active, seen = self.bound(self.positions)
            y = found = None
            try:
                y = runner(call, active)
            except Exception as raised:
                found = raised
            left = self.after(seen)
            ids = identities(y, seen)
            self.put_back()
            before = len(self.problems)
            if error is not None:
                if found is None:
                    self.report("exception", f"a plain call raises {in_short(error)}; {mode} nothing is raised")
                elif type(found) is not type(error) or str(found) != str(error):
                    self.report("exception", f"a plain call raises {in_short(error)}; {mode} {in_short(found)}")
            elif found is not None:
                self.report("exception", f"a plain call returns; {mode} it raises {in_short(found)}")
            else:
                self.report_all("primal", [f"{words}, {mode} " for words in self.unlike(y)])
                if ids != self.ids:
                    self.report(
                        "primal",
                        f"what is handed back: {mode} {told(ids)}, by a plain call {told(self.ids)}",
                    )
            if self.state:
                self.report_all("state", [f"{mode} {words}" for words in changes(self.left, left)])
            sound = sound and len(self.problems) == before
        return error is None and (sound or found is None)

    def unlike(self, y: Any) -> list[str]:
        """How `y` differs from the result of a plain call; some loops of NumPy round by where memory lies."""
        found = contents(y, "the result")
        words = changes(self.given_y, found)
        for _ in range(RETRIES if words and self.active else 0):
            call, active, _ = self.bound(self.positions)
            if not changes(contents(call(*active), "the result"), found):
                return []
        return [line.replace("a plain call leaves", "a plain call gives") for line in words]

    # -- the rule alone ----------------------------------------------------------------------------------------------

    def apply_rule(self, half: Callable[..., Any], name: str) -> tuple[Any, Any, Any] | None:
        """(y, the map of tangents, the arguments) of one half of the rule, with the primal looked at."""
        _, _, seen = self.bound(())
        full, kwargs = seen
        try:
            result = half(*full, **kwargs)
        except Exception as found:
            self.put_back()
            if self.error is None:
                self.report("exception", f"a plain call returns; the {name} raises {in_short(found)}")
            elif type(found) is not type(self.error) or str(found) != str(self.error):
                self.report(
                    "exception",
                    f"a plain call raises {in_short(self.error)}; the {name} raises {in_short(found)}",
                )
            return None
        left = self.after(seen)
        self.put_back()
        if self.error is not None:
            self.report("exception", f"a plain call raises {in_short(self.error)}; the {name} does not")
            return None
        if type(result) is not tuple or len(result) != 2 or not callable(result[1]):
            self.report("rule", f"the {name} must return (y, a function); it returned {in_short(result)}")
            return None
        self.report_all("primal", [f"{words}, by the {name}" for words in self.unlike(result[0])])
        if self.state:
            self.report_all("state", [f"after the {name} {words}" for words in changes(self.left, left)])
        return result[0], result[1], seen

    def look_at_rrule(self, rule: Rule) -> None:
        """The reverse half, called by itself."""
        if rule.rrule is None:
            return
        applied = self.apply_rule(rule.rrule, "rrule")
        if applied is None:
            return
        y, pullback, seen = applied
        y_bar = tangent_like(y, random_like(self.random))
        if not flat(y_bar, y) or not self.positions:
            return
        with self.part("rule"), np.errstate(all="ignore"):
            self.look_at_pullback(y, pullback, seen, y_bar)

    def look_at_pullback(self, y: Any, pullback: Callable[..., Any], seen: Any, y_bar: Any) -> None:
        """What a pullback returns, and what it leaves alone."""
        left = self.after(seen)
        primal = contents(y, "the result")
        given = contents(y_bar, "y_bar")
        first = pullback(as_rules_get_it(y_bar, y))
        if type(first) is not tuple:
            self.report(
                "rule", f"the pullback must return a tuple, one cotangent an argument; not {in_short(first)}"
            )
            return
        count = min(len(first), len(self.args))  # a parameter that was not given has no cotangent to look at
        evaluated: list[Any] = list(first[:count])
        for n in reversed(range(count)):
            evaluated[n] = self.evaluated_twice(first[n], n)
        kept = [contents(bar, f"the cotangent of argument {n}") for n, bar in enumerate(evaluated)]
        self.report_all("pullback", [f"y_bar is changed: {w}" for w in changes(given, contents(y_bar, "y_bar"))])
        self.report_all("pullback", [f"after it {w}" for w in changes(left, self.after(seen))])
        self.report_all("pullback", [f"after it {w}" for w in changes(primal, contents(y, "the result"))])
        fitting = self.fit_cotangents(evaluated, seen[0])
        other_bar = tangent_like(y, random_like(self.random))
        other = [unthunk(bar) for bar in pullback(as_rules_get_it(copied(other_bar), y))[:count]]
        lines = [
            f"the cotangent of argument {n}, returned earlier, is changed by a later call of the pullback"
            for n, bar in enumerate(evaluated)
            if changes(kept[n], contents(bar, f"the cotangent of argument {n}"))
        ]
        again = [unthunk(bar) for bar in pullback(as_rules_get_it(copied(y_bar), y))[:count]]
        for n in range(len(evaluated)):
            name = f"the cotangent of argument {n}"
            if n >= len(again) or changes(kept[n], contents(again[n], name)):
                lines.append(f"{name} is another when the pullback is called again")
        self.report_all("repetition", lines)
        if not fitting or lines:
            return
        sums = combined(2.0, y_bar, -3.0, other_bar, y)
        both = [unthunk(bar) for bar in pullback(as_rules_get_it(sums, y))[:count]]
        for n in self.positions:
            if n >= len(evaluated) or evaluated[n] is NoTangent:
                continue
            x = self.args[n]
            parts = [projected(bars[n], x) for bars in (evaluated, other, both)]
            expected = combined(2.0, parts[0], -3.0, parts[1], x)
            words = "the pullback is not linear in y_bar"
            self.compare("linearity", f"argument {n}", parts[2], expected, x, words, (parts[0], parts[1]))

    def evaluated_twice(self, bar: Any, n: int) -> Any:
        """A cotangent, computed; a postponed one is asked twice and must be computed once."""
        if not isinstance(bar, Thunk):
            return bar
        value = bar.evaluate()
        if bar.evaluate() is not value:
            self.report("thunk", f"the postponed cotangent of argument {n} is computed again each time it is asked for")
        while isinstance(value, Thunk):
            value = value.evaluate()
        return value

    def fit_cotangents(self, bars: list[Any], args: list[Any]) -> bool:
        """Whether the cotangents that a rule returns fit their arguments."""
        before = len(self.problems)
        for n, x in enumerate(args):
            bar = bars[n] if n < len(bars) else NoTangent
            where = f"argument {n}, {a(x)},"
            if n in self.positions:
                if bar is NoTangent:
                    self.report(
                        "zero",
                        f"{where} has a tangent, but the pullback "
                        + ("gives none for it" if n >= len(bars) else "returns NoTangent for it")
                        + "; a derivative that is known to be zero is ZeroTangent",
                    )
                elif bar is not ZeroTangent:
                    self.report_all("cotangent", loosely(bar, x, f"argument {n}"))
            elif bar is ZeroTangent and has_no_tangent(x):
                self.report("zero", f"{where} has no tangent: the pullback should return NoTangent, not ZeroTangent")
            elif not is_zero(bar) and isinstance(x, (str, bytes, type(None))):
                self.report("cotangent", f"{where} has no tangent; the pullback returns {in_short(bar)} for it")
        return len(self.problems) == before

    def look_at_frule(self, rule: Rule) -> None:
        """The forward half, called by itself."""
        for chunked, half in ((False, rule.frule), (True, rule.chunked_frule)):
            if half is None:
                continue
            name = "chunked frule" if chunked else "frule"
            applied = self.apply_rule(half, name)
            if applied is None or not self.positions:
                continue
            y, pushforward, seen = applied
            with self.part("rule"), np.errstate(all="ignore"):
                self.look_at_pushforward(name, y, pushforward, seen, 2 if chunked else None)

    def look_at_pushforward(
        self, name: str, y: Any, pushforward: Callable[..., Any], seen: Any, chunk: int | None
    ) -> None:
        """What a pushforward returns, and what it leaves alone."""
        args = seen[0]
        left = self.after(seen)

        def dots_of(tangents: dict[int, Any]) -> tuple[Any, ...]:
            return tuple(filled(tangents[n], x, chunk) if n in tangents else ZeroTangent for n, x in enumerate(args))

        def random() -> dict[int, Any]:
            return {n: self.random_dots(args[n], chunk) for n in self.positions}

        one, two = random(), random()
        dots = dots_of(one)
        given = contents(dots, "the tangents")
        y_dot = pushforward(dots)
        kept = contents(y_dot, "y_dot")
        self.report_all("pushforward", [f"after it {w}" for w in changes(given, contents(dots, "the tangents"))])
        self.report_all("pushforward", [f"after it {w}" for w in changes(left, self.after(seen))])
        pushforward(dots_of(two))
        if changes(kept, contents(y_dot, "y_dot")):
            self.report("repetition", f"what the pushforward of the {name} returned is changed by a later call of it")
        if changes(kept, contents(pushforward(dots_of(one)), "y_dot")):
            self.report("repetition", f"the pushforward of the {name} gives something else when called again")
        parts = [leading(pushforward(dots_of({n: one[n]})), y, chunk) for n in self.positions]
        whole = leading(y_dot, y, chunk)
        total = parts[0]
        for part in parts[1:]:
            total = [None if p is None and q is None else added(p, q) for p, q in zip(total, part, strict=True)]
        for k, (p, q, leaf) in enumerate(zip(whole, total, leaves_of(y, "the result"), strict=True)):
            if not near(p, q, self.exact * 10):
                self.report(
                    "linearity",
                    f"{leaf.path}: the pushforward of the {name} of all tangents is {short(p)}, the sum of those of "
                    f"one at a time {short(q)}",
                )
            del k

    def random_dots(self, x: Any, chunk: int | None) -> Any:
        """A random tangent of an argument, or a chunk of them."""
        make = random_like(self.random)
        if chunk is None:
            return tangent_like(x, make)
        return tangent_like(x, lambda leaf: np.stack([np.asarray(make(leaf)) for _ in range(chunk)]))

    # -- the gradient ------------------------------------------------------------------------------------------------

    def pulled(self, y_bar: Any, positions: tuple[int, ...] | None = None) -> tuple[Any, ...]:
        """The gradient for one cotangent, from a run of its own."""
        call, active, _ = self.bound(self.positions if positions is None else positions)
        _, pullback = vjp(call, *active)
        return pullback(copied(y_bar))

    def look_at_gradient(self) -> tuple[Any, tuple[Any, ...]] | None:
        """(y_bar, the gradient), with everything but its numbers looked at."""
        one_number = kind_of(type(self.y)) == NUMBER and not isinstance(self.y, (complex, np.complexfloating))
        y_bar = as_number(1, self.y) if one_number else tangent_like(self.y, random_like(self.random))
        x = self.active
        with self.part("gradient"), np.errstate(all="ignore"):
            call, active, seen = self.bound(self.positions)
            y, pullback = vjp(call, *active)
            left = self.after(seen)
            given = contents(y_bar, "y_bar")
            bars = pullback(y_bar)
            names = [f"argument {n}" for n in self.positions]
            misfits = [words for bar, of, name in zip(bars, x, names, strict=True) for words in exactly(bar, of, name)]
            self.report_all("cotangent type", misfits)
            self.report_all("pullback", [f"it changes {w}" for w in changes(given, contents(y_bar, "y_bar"))])
            if self.state:
                self.report_all("pullback", [f"after it {w}" for w in changes(left, self.after(seen))])
            if misfits:
                return None
            kept = contents(bars, "the gradient")
            self.look_at_memory(bars, y_bar, y, seen)
            again = pullback(copied(y_bar))
            if changes(kept, contents(again, "the gradient")):
                self.report("repetition", "the gradient is another when the pullback is called again")
            for leaf in leaves_of(bars, ""):
                if isinstance(leaf.x, np.ndarray) and leaf.x.flags.writeable:
                    leaf.x[...] = 1e6
            third = pullback(copied(y_bar))
            if changes(kept, contents(third, "the gradient")):
                self.report("repetition", "writing into a gradient changes what the pullback returns next")
            bars = again
            if not flat(y_bar, self.y):
                self.all_zero("zero", bars, "the result has no tangent")
                return y_bar, bars
            if not self.smooth:
                self.all_zero("zero", bars, "the result counts as a constant")
                return y_bar, bars
            other = tangent_like(self.y, random_like(self.random))
            sums = pullback(combined(2.0, y_bar, -3.0, other, self.y))
            others = pullback(other)
            expected = combined(2.0, bars, -3.0, others, x)
            self.compare_all("linearity", sums, expected, "not linear in y_bar", (bars, others))
            self.all_zero("zero", pullback(ZeroTangent), "y_bar is ZeroTangent")
            self.look_at_thunks(y_bar, pullback, bars)
            self.look_at_outputs(y_bar, pullback, bars)
            return y_bar, bars
        return None

    def look_at_memory(self, bars: tuple[Any, ...], y_bar: Any, y: Any, seen: Any) -> None:
        """A gradient has memory of its own: not that of y_bar, of the arguments, of the result or of another entry."""
        others = [leaf for leaf in leaves_of(y_bar, "y_bar") if isinstance(leaf.x, np.ndarray)]
        others += [leaf for leaf in leaves_of(y, "the result") if isinstance(leaf.x, np.ndarray)]
        for n, x in enumerate(seen[0]):
            others += [leaf for leaf in leaves_of(x, f"argument {n}") if isinstance(leaf.x, np.ndarray)]
        lines = []
        for n, bar in zip(self.positions, bars, strict=True):
            for leaf in leaves_of(bar, f"the gradient of argument {n}"):
                if not isinstance(leaf.x, np.ndarray):
                    continue
                lines += [
                    f"{leaf.path} shares memory with {other.path}"
                    for other in others
                    if np.may_share_memory(leaf.x, other.x) and np.shares_memory(leaf.x, other.x)
                ]
                others.append(leaf)
        self.report_all("aliasing", lines)

    def look_at_thunks(self, y_bar: Any, pullback: Callable[..., Any], bars: tuple[Any, ...]) -> None:
        """A postponed cotangent is computed once and gives the same."""
        count = [0]

        def compute() -> Any:
            count[0] += 1
            return copied(y_bar)

        found = pullback(Thunk(compute))
        self.compare_all("thunk", found, bars, "a postponed y_bar (a Thunk) gives another gradient")
        if count[0] > 1:
            self.report("thunk", f"a postponed y_bar is computed {count[0]} times")

    def look_at_outputs(self, y_bar: Any, pullback: Callable[..., Any], bars: tuple[Any, ...]) -> None:
        """With several outputs: the cotangents of one at a time add up."""
        parts = flat(y_bar, self.y)
        if not 1 < len(parts) <= 8:
            return
        total: Any = None
        terms = []
        for k in range(len(parts)):
            remaining = iter(range(len(parts)))
            only = tangent_like(self.y, lambda _, k=k, r=remaining: parts[k] if next(r) == k else None)
            found = pullback(only)
            terms.append(found)
            total = found if total is None else combined(1.0, total, 1.0, found, self.active)
        words = "cotangents of one output at a time do not add up to those of all"
        self.compare_all("outputs", total, bars, words, tuple(terms))

    # -- numbers -----------------------------------------------------------------------------------------------------

    def look_at_differences(self, y_bar: Any, bars: tuple[Any, ...]) -> None:
        """Each argument, along unit or random directions."""
        if not flat(y_bar, self.y):
            return
        leaves = [
            (n, leaf) for n, x in zip(self.positions, self.active, strict=True) for leaf in leaves_of(x, f"argument {n}")
        ]
        flats = flat(bars, self.active)
        for n in self.positions:
            mine = [k for k, (m, _) in enumerate(leaves) if m == n]
            entries = [(k, at, way) for k in mine for at, way in directions_in(leaves[k][1].x)]
            if len(entries) <= FEW:
                chosen = [self.unit_direction(leaves, *entry) for entry in entries]
            else:
                chosen = [(f"argument {n}", self.random_direction(leaves, mine), 1.0) for _ in range(2)]
            wrong = [self.difference(*direction, flats, y_bar) for direction in chosen]
            lines = [words for words in wrong if words]
            if lines and len(entries) > FEW:
                picked = entries
                if len(entries) > NAMED:
                    at = self.random.choice(len(entries), NAMED, replace=False)
                    picked = [entries[k] for k in sorted(at.tolist())]
                named = [self.difference(*self.unit_direction(leaves, *entry), flats, y_bar) for entry in picked]
                lines = [words for words in named if words] or lines
            self.report_all("differences", lines)

    def unit_direction(self, leaves: list[Any], k: int, at: Any, way: complex) -> tuple[str, list[Any], float]:
        """(the path of one entry, the direction that moves it alone by its own size, that size)."""
        path, x = leaves[k][1]
        ways: list[Any] = [None] * len(leaves)
        size = size_at(x, at)
        if at is None:
            ways[k] = as_step(way * size, x)
        else:
            ways[k] = np.zeros(x.shape, complex if x.dtype.kind == "c" else float)
            ways[k][at] = way * size if x.dtype.kind == "c" else size
            path = f"{path}[{', '.join(map(str, at))}]"
        return path + (".imag" if way == 1j else ""), ways, size

    def random_direction(self, leaves: list[Any], mine: list[int]) -> list[Any]:
        """A direction that moves every entry of some leaves, each by about its own size."""
        from plaingrad.testing.differences import size_of

        ways: list[Any] = [None] * len(leaves)
        for k in mine:
            x = leaves[k][1].x
            if isinstance(x, np.ndarray):
                t = self.random.uniform(0.3, 1.0, x.shape) * self.random.choice((-1.0, 1.0), x.shape)
                if x.dtype.kind == "c":
                    t = t * np.exp(1j * self.random.uniform(0, 2 * math.pi, x.shape))
                ways[k] = np.asarray(t * size_of(x))
            else:
                t = float(self.random.uniform(0.3, 1.0))
                if isinstance(x, (complex, np.complexfloating)):
                    t = t * complex(np.exp(1j * self.random.uniform(0, 2 * math.pi)))
                ways[k] = as_step(t * size_of(x), x)
        return ways

    def difference(self, path: str, ways: list[Any], size: float, flats: list[Any], y_bar: Any) -> str | None:
        """What is wrong with the gradient along one direction, in words; the numbers are those of a step of one."""
        with np.errstate(all="ignore"):
            ours = sum((leaf_inner(bar, d) for bar, d in zip(flats, ways, strict=True)), 0.0)
        low = self.unit > 1e-10
        args, rtol, unit = self.active, self.rtol, self.unit
        if low:  # differences of the same function in double precision, if it is made for that
            rtol = max(rtol, 200 * unit)
            with contextlib.suppress(Exception), np.errstate(all="ignore"):
                args = widened(self.active)
                unit = precision_of(args, self.plain(*copied(args)))
        found = along(self.plain, args, ways, y_bar, unit)
        if low and not math.isfinite(found.value):
            args, unit = self.active, self.unit
            found = along(self.plain, args, ways, y_bar, unit)
        terms = 0.0
        if low:
            terms = sum(
                (float(np.sum(np.abs(wide_array(bar)) * np.abs(wide_array(d)))) for bar, d in zip(flats, ways, strict=True)
                 if bar is not None and d is not None), 0.0,
            )
        if self.agrees(ours, found, rtol, terms):
            return None
        if not math.isfinite(ours) and not math.isfinite(found.value):
            return None
        found = along(self.plain, args, ways, y_bar, unit, thorough=True)
        scale = max(abs(ours), abs(found.value)) if math.isfinite(found.value) else abs(ours)
        if found.error + found.noise > 1e-3 * rtol * scale or found.value == 0:  # differences may not see it
            others = [complex_step(self.plain, args, ways, y_bar)]
            others.append(by_mpmath(self.f, args, ways, y_bar) if not self.kwargs else None)
            known = [other for other in others if other is not None]
            if any(abs(ours - other) <= max(rtol, 1e3 * self.unit) * abs(other) for other in known):
                return None
            if abs(ours - found.value) <= 10 * (found.error + found.noise) <= 1e-3 * scale:
                return None  # as far as they can tell
            doubt = f" (known to {(found.error + found.noise) / size:.1g})"
            more = "".join(f", otherwise {other / size:.10g}" for other in known)
            return f"{path}: the gradient gives {ours / size:.10g}, differences {found.value / size:.10g}{doubt}{more}"
        return f"{path}: the gradient gives {ours / size:.10g}, differences {found.value / size:.10g}"

    def agrees(self, ours: float, found: Estimate, rtol: float, terms: float) -> bool:
        """Whether a derivative is that of the differences, up to what they can tell, and its own terms."""
        scale = max(abs(ours), abs(found.value), terms)
        return abs(ours - found.value) <= self.atol + rtol * scale + 4 * found.noise

    def compare(
        self, check: str, where: str, found: Any, expected: Any, x: Any, words: str, terms: tuple[Any, ...] = ()
    ) -> None:
        """Two tangents of `x` that should be equal, up to the rounding of the `terms` that they are sums of."""
        sizes = [max((largest(flat(term, x)[k]) for term in terms), default=0.0) for k in range(len(flat(found, x)))]
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

    # -- accumulation ------------------------------------------------------------------------------------------------

    def look_at_accumulation(self, y_bar: Any, bars: tuple[Any, ...]) -> None:
        """One argument at a time; f called twice; one value passed as two arguments."""
        if len(self.positions) > 1:
            for k, n in enumerate(self.positions[:6]):
                with self.part("accumulation"), np.errstate(all="ignore"):
                    (alone,) = self.pulled(y_bar, (n,))
                    words = "differentiated alone it has another gradient"
                    self.compare("accumulation", f"argument {n}", alone, bars[k], self.active[k], words)
        if self.changed or self.mutates or not flat(y_bar, self.y):
            return
        with self.part("accumulation"), np.errstate(all="ignore"):
            call, active, _ = self.bound(self.positions)

            def twice(*given: Any) -> Any:
                return call(*given), call(*given)

            _, pullback = vjp(twice, *active)
            found = pullback((copied(y_bar), copied(y_bar)))
            expected = combined(1.0, bars, 1.0, bars, self.active)
            self.compare_all("accumulation", found, expected, "f called twice has not twice the gradient")
        pairs = [
            (i, j)
            for i in self.positions
            for j in self.positions
            if i < j and alike(self.args[i], self.args[j])
        ]
        for i, j in pairs[:2]:
            self.look_at_one_value_as_two(i, j)

    def look_at_one_value_as_two(self, i: int, j: int) -> None:
        """The gradient of f(x, x) is the sum of the gradients in both places."""
        call, _, seen = self.bound((i, j))
        x = self.args[i]
        with np.errstate(all="ignore"):
            try:
                y = call(copied(x), copied(x))
                if identities(call(shared := copied(x), shared), ([shared], {})):
                    return  # the argument itself is handed back
            except Exception:
                return  # f is not made for it
        with self.part("accumulation"), np.errstate(all="ignore"):
            y_bar = tangent_like(y, random_like(self.random))
            if not flat(y_bar, y):
                return

            def both(given: Any) -> Any:
                return call(given, given)

            _, pullback = vjp(call, copied(x), copied(x))
            apart = pullback(copied(y_bar))
            _, pullback = vjp(both, copied(x))
            (together,) = pullback(copied(y_bar))
            expected = combined(1.0, apart[0], 1.0, apart[1], x)
            words = f"passed as argument {j} too, its gradient is not the sum of both"
            self.compare("accumulation", f"argument {i}", together, expected, x, words, apart)

    # -- forward mode ------------------------------------------------------------------------------------------------

    def look_at_modes(self, y_bar: Any, bars: tuple[Any, ...], chunks: bool) -> None:
        """<y_bar, y_dot> = <x_bar, x_dot>; types of y_dot; chunks."""
        dots = tangent_like(self.active, random_like(self.random))
        with self.part("forward mode"), np.errstate(all="ignore"):
            y_dot = self.pushed(dots)
            misfits = exactly(y_dot, self.y, "the result", optional=True)
            self.report_all("tangent type", misfits)
            if misfits:
                return
            there, back = inner(y_bar, y_dot, self.y), inner(bars, dots, self.active)
            scale = magnitude(y_bar, y_dot, self.y) + magnitude(bars, dots, self.active)
            if not abs(there - back) <= 10 * self.exact * scale and (there == there or back == back):
                self.report(
                    "modes",
                    f"forward and reverse mode disagree: <y_bar, y_dot> = {there:.10g}, <x_bar, x_dot> = {back:.10g}"
                    + self.guilty(y_bar, bars, dots),
                )
            if not chunks:
                return
            others = tangent_like(self.active, random_like(self.random))
            call, active, _ = self.bound(self.positions)
            ts, us = iter(flat(dots, self.active)), iter(flat(others, self.active))
            stacked = tangent_like(self.active, lambda _: np.stack([np.asarray(next(ts)), np.asarray(next(us))]))
            _, y_dots = push(call, active, stacked, {}, chunk=2)
            looped = [flat(y_dot, self.y), flat(self.pushed(others), self.y)]
            for k, (t, leaf) in enumerate(zip(flat(y_dots, self.y), leaves_of(self.y, "the result"), strict=True)):
                for c in range(2):
                    if not near(None if t is None else t[c], looped[c][k], self.exact):
                        self.report(
                            "chunk",
                            f"{leaf.path}: tangent {c} of a chunk is {short(None if t is None else t[c])}, alone "
                            f"{short(looped[c][k])}",
                        )

    def pushed(self, dots: Any, positions: tuple[int, ...] | None = None) -> Any:
        """The tangent of the result for tangents of the arguments."""
        call, active, _ = self.bound(self.positions if positions is None else positions)
        return jvp(call, active, copied(dots))[1]

    def guilty(self, y_bar: Any, bars: tuple[Any, ...], dots: Any) -> str:
        """Which arguments the modes disagree about."""
        names = []
        for k, n in enumerate(self.positions):
            there = inner(y_bar, self.pushed((dots[k],), (n,)), self.y)
            back = inner(bars[k], dots[k], self.active[k])
            scale = magnitude(bars[k], dots[k], self.active[k]) + abs(there)
            if not abs(there - back) <= 10 * self.exact * scale:
                names.append(f"argument {n} ({there:.10g} forward, {back:.10g} in reverse)")
        return "; " + ", ".join(names) if names else ""

    # -- second derivatives ------------------------------------------------------------------------------------------

    def look_at_second_order(self, y_bar: Any, forward: bool, differences: bool) -> None:
        """The derivative of the gradient, in both modes, against differences of the gradient."""
        if not flat(y_bar, self.y) or not any(np.size(leaf.x) for leaf in leaves_of(self.active, "")):
            return
        x = self.active

        ways = tangent_like(x, random_like(self.random))
        ours = forwards = None
        weights: Any = None
        with self.part("second order"), np.errstate(all="ignore"):
            bars, pullback = vjp(self.gradient(y_bar), *[copied(part) for part in x])
            weights = tangent_like(bars, random_like(self.random))
            gradient = pullback(copied(weights))
            ours = inner(gradient, ways, x)
            scale = max(magnitude(gradient, ways, x), magnitude(weights, bars, bars))
        if weights is None:
            return
        if forward:
            with self.part("second order"), np.errstate(all="ignore"):
                _, bars_dot = jvp(self.gradient(y_bar), tuple(copied(part) for part in x), ways)
                forwards = inner(weights, bars_dot, bars)
                scale = max(scale, magnitude(weights, bars_dot, bars))
                if not abs(ours - forwards) <= 100 * self.exact * scale and (ours == ours or forwards == forwards):
                    self.report(
                        "second order",
                        f"forward over reverse gives {forwards:.10g}, reverse over reverse {ours:.10g}",
                    )
        if not differences or self.unit > 1e-10:
            return
        with self.part("second order"), np.errstate(all="ignore"):
            found = along(lambda *given: self.gradient(copied(y_bar))(*given), x, flat(ways, x), weights, self.unit)
            tolerance = self.atol + max(1e-5, self.rtol) * max(scale, abs(found.value)) + 4 * found.noise
            if abs(ours - found.value) <= tolerance + 10 * found.error or ours != ours:
                return
            if found.value == found.value:
                self.report(
                    "second order",
                    f"reverse over reverse gives {ours:.10g}, differences of the gradient {found.value:.10g}",
                )

    def gradient(self, y_bar: Any) -> Callable[..., Any]:
        """The gradient as a function of the arguments."""
        call, _, _ = self.bound(self.positions)

        def first(*given: Any) -> Any:
            _, pullback = vjp(call, *given)
            return flat(pullback(y_bar), given)

        return first


# -- pieces ------------------------------------------------------------------------------------------------------------


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
            for key, value in entries_of(x):
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
            for key, value in entries_of(x):
                look(value, inner_path(x, key, path), depth + 1)

    look(y, "the result", 0)
    return found


def told(ids: list[str]) -> str:
    """Identities in words."""
    return ", ".join(ids) if ids else "the result is new"


def directions_in(x: Any) -> Iterator[tuple[Any, complex]]:
    """(index, 1 or 1j) of every real direction in a leaf."""
    places = np.ndindex(x.shape) if isinstance(x, np.ndarray) else (None,)
    ways = (1.0, 1j) if np.iscomplexobj(x) else (1.0,)
    for at in places:
        for way in ways:
            yield at, way


def size_at(x: Any, at: Any) -> float:
    """The scale of one entry."""
    from plaingrad.testing.differences import size_of

    return float(size_of(x) if at is None else size_of(x)[at])


def as_step(step: Any, x: Any) -> Any:
    """A step of a number: real for a real one."""
    return complex(step) if isinstance(x, (complex, np.complexfloating)) else float(np.real(step))


def alike(x: Any, y: Any) -> bool:
    """Whether one value can be passed for both."""
    if isinstance(x, np.ndarray):
        return isinstance(y, np.ndarray) and x.shape == y.shape and x.dtype == y.dtype and x.size > 0
    return kind_of(type(x)) == NUMBER and type(x) is type(y)


def has_no_tangent(x: Any) -> bool:
    """Whether no tangent belongs to `x`. A whole number may stand for a real one, a function may hold some."""
    return isinstance(x, (str, bytes, bool, type(None), type, slice))


def projected(bar: Any, x: Any) -> Any:
    """A cotangent that a rule returned, in the space of its argument, entry by entry."""
    parts = iter(flat(bar, x))

    def make(leaf: Any) -> Any:
        part = next(parts)
        return None if part is None or is_zero(part) else project(part, leaf)

    return tangent_like(x, make)


def loosely(bar: Any, x: Any, path: str) -> list[str]:
    """Why a cotangent returned by a rule does not belong to `x`; broadcasting and realness are mended outside."""
    bar = unthunk(bar)
    if is_zero(bar) or bar is None:
        return [] if bar is not None else [f"{path}: the pullback returns None; zero is ZeroTangent"]
    if is_leaf(x):
        if isinstance(x, np.ndarray):
            if isinstance(bar, (list, tuple, dict, str, Tangent)) or np.asarray(bar).dtype.kind not in "fciub":
                return [f"{path} is an array, but the pullback returns {a(bar)}"]
            try:
                np.broadcast_shapes(np.shape(bar), x.shape)
            except ValueError:
                return [f"{path} has shape {x.shape}, but its cotangent {np.shape(bar)}"]
            return []
        if kind_of(type(bar)) == NUMBER or isinstance(bar, (int, np.integer)):
            return []
        if isinstance(bar, np.ndarray) and bar.dtype.kind in "fciub":
            return []  # the sum over the axes of broadcasting
        return [f"{path} is {a(x)}, but the pullback returns {a(bar)}"]
    found = []
    if is_container(x):
        if isinstance(bar, (str, float, complex, int)) or (not isinstance(bar, Mapping) and not hasattr(bar, "__getitem__")):
            return [f"{path} is {a(x)}, but the pullback returns {a(bar)}; it must give one cotangent for each entry"]
        for key, value in entries_of(x):
            if not any(True for _ in leaves_of(value, "")):
                continue
            inner = inner_path(x, key, path)
            try:
                entry = bar[key]
            except (KeyError, IndexError, TypeError):
                found.append(f"{inner} has no cotangent in the {type(bar).__name__} that the pullback returns")
                continue
            found.extend(loosely(entry, value, inner))
    return found


def exactly(bar: Any, x: Any, path: str, optional: bool = False, depth: int = 0) -> list[str]:
    """Why `bar` is not a tangent of `x` in the type that it should have."""
    if optional and (bar is None or (isinstance(x, (int, np.integer)) and isinstance(bar, float) and bar == 0)):
        return []
    if is_leaf(x):
        if isinstance(x, np.ndarray):
            if type(bar) is not np.ndarray and not isinstance(bar, np.ndarray):
                return [f"{path} is an array, its derivative is {a(bar)}"]
            if bar.shape != x.shape or bar.dtype != x.dtype:
                return [
                    f"{path} is an array of shape {x.shape} and dtype {x.dtype}, its derivative has shape "
                    f"{bar.shape} and dtype {bar.dtype}"
                ]
            return []
        if type(x) in (float, complex) or isinstance(x, np.inexact):
            return [] if type(bar) is type(x) else [f"{path} is {a(x)}, its derivative is {a(bar)}"]
        return [] if kind_of(type(bar)) == NUMBER else [f"{path} is {a(x)}, its derivative is {a(bar)}"]
    if bar is None or depth > 20:
        wants = depth <= 20 and any(True for _ in leaves_of(x, ""))
        return [f"{path} holds numbers, its derivative is None"] if wants else []
    kind = kind_of(type(x))
    if kind == SEQUENCE:
        if not isinstance(bar, tuple if isinstance(x, tuple) else list) or len(bar) != len(x):
            return [f"{path} is {a(x)}, its derivative is {a(bar)}"]
    elif kind == MAPPING:
        if not isinstance(bar, dict) or list(bar) != list(x):
            return [f"{path} is {a(x)} with keys {list(x)}, its derivative is {a(bar)}"]
    elif kind == OBJECT and is_container(x):
        if type(bar) is not Tangent:
            return [f"{path} is {a(x)}, its derivative is {a(bar)}, not a Tangent"]
    else:
        return [f"{path} is {a(x)}, which has no tangent; its derivative is {a(bar)}, not None"]
    found = []
    for key, value in entries_of(x):
        try:
            entry = bar[key]
        except (KeyError, IndexError):
            found.append(f"{inner_path(x, key, path)} has no entry in the derivative")
            continue
        found.extend(exactly(entry, value, inner_path(x, key, path), optional, depth + 1))
    return found


def filled(t: Any, x: Any, chunk: int | None) -> Any:
    """A tangent as rules get it: explicit zeros inside containers, and where there is no tangent `NoTangent`."""
    if is_leaf(x):
        return t
    if not is_container(x):
        return NoTangent
    parts = [filled(None if t is None else t[key], value, chunk) for key, value in entries_of(x)]
    kind = kind_of(type(x))
    if kind == MAPPING:
        return dict(zip([key for key, _ in entries_of(x)], parts, strict=True))
    if kind == OBJECT:
        return Tangent(type(x), dict(zip([key for key, _ in entries_of(x)], parts, strict=True)))
    return tuple(parts) if isinstance(x, tuple) else parts


def as_rules_get_it(y_bar: Any, y: Any) -> Any:
    """A cotangent as the pullback of a rule gets it: a tuple for several outputs, `ZeroTangent` where there is none."""
    if is_leaf(y):
        return y_bar
    if not is_container(y):
        return ZeroTangent
    parts = [as_rules_get_it(None if y_bar is None else y_bar[key], value) for key, value in entries_of(y)]
    return tuple(parts)


def leading(y_dot: Any, y: Any, chunk: int | None) -> list[Any]:
    """The entries of y_dot as arrays of the shape of those of `y`, after a leading axis if there is a chunk."""
    found = []
    for t, leaf in zip(flat(y_dot, y), leaves_of(y, ""), strict=True):
        if t is None:
            found.append(None)
            continue
        shape = np.shape(leaf.x) if chunk is None else (chunk, *np.shape(leaf.x))
        found.append(np.broadcast_to(wide_array(t), shape))
    return found


def added(p: Any, q: Any) -> Any:
    """p + q, where None is zero."""
    if p is None or q is None:
        return q if p is None else p
    return p + q


def largest(t: Any) -> float:
    """The largest finite entry of a tangent of one leaf, by size."""
    if t is None:
        return 0.0
    absolute = np.atleast_1d(np.abs(wide_array(t)))
    return float(np.max(absolute[np.isfinite(absolute)], initial=0.0))


def near(p: Any, q: Any, tolerance: float, size: float = 0.0) -> bool:
    """Whether two tangents of one leaf agree, relative to the largest entry or to `size`; None is zero."""
    if p is None and q is None:
        return True
    with np.errstate(all="ignore"):
        scale = max(largest(p), largest(q), size)
        p = 0.0 if p is None else wide_array(p)
        q = 0.0 if q is None else wide_array(q)
        if np.shape(p) != np.shape(q) and np.ndim(p) and np.ndim(q):
            return False
        return bool(np.all(np.isclose(p, q, rtol=tolerance, atol=tolerance * scale, equal_nan=True)))


def wide_array(t: Any) -> Any:
    """A tangent as an array in double precision at least."""
    if isinstance(t, (np.ndarray, np.generic)):
        return np.asarray(wide(np.asarray(t)))
    return np.asarray(wide(t))


def first_line(error: BaseException) -> str:
    """The message of an error, in one line."""
    text = str(error).partition("\n")[0]
    return text if len(text) <= 200 else text[:197] + "..."


def in_short(x: Any) -> str:
    """A value or an error for a message."""
    if isinstance(x, BaseException):
        return f"{type(x).__name__}({first_line(x)!r})"
    text = repr(x).replace("\n", " ")
    return text if len(text) <= 80 else f"{a(x)}"


def short(t: Any) -> str:
    """A tangent for a message."""
    if t is None:
        return "zero"
    if isinstance(t, np.ndarray):
        return np.array2string(t, precision=6, threshold=6).replace("\n", "")
    return f"{t:.10g}" if isinstance(t, (float, complex)) else repr(t)


def a(x: Any) -> str:
    """ "a list", "an int", "an array of shape (3,)"."""
    if x is None or x is NoTangent or x is ZeroTangent:
        return repr(x)
    if isinstance(x, np.ndarray):
        return f"an array of shape {x.shape} and dtype {x.dtype}"
    name = type(x).__qualname__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
