"""One derivative compared with a plain call on copies of its arguments, and its two modes with each other."""

from __future__ import annotations

import contextlib
import contextvars
import math
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from plaingrad.class_keys import is_among
from plaingrad.copying import deep_copy
from plaingrad.engine.forward.forward import ForwardLevel
from plaingrad.engine.forward.push import unobserved as push_unobserved
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.refusals.refuse import name_of
from plaingrad.engine.reverse.run import Run
from plaingrad.errors import CheckError, PlaingradError
from plaingrad.testing.case import as_real, identities, merged
from plaingrad.testing.differences import along, size_of
from plaingrad.testing.states import EXACT, Array, Number, World, changes, contents, is_data
from plaingrad.testing.structures import (
    array_copy,
    copied,
    flat,
    is_container,
    is_leaf,
    leaf_inner,
    leaves_of,
    mapped,
    parts_of,
    precision_of,
    random_like,
    tangent_like,
    wide,
)
from plaingrad.testing.words import in_short, told

if TYPE_CHECKING:
    from plaingrad.testing.checks import Checks

MODES = 1e-7  # how far the modes may be apart, relative to the terms of what is compared
DIFFERENCES = 1e-4  # and differences from a mode
RETRIES = 3  # some loops of NumPy round by where memory lies

is_checking: contextvars.ContextVar[bool] = contextvars.ContextVar(
    "a derivative is being checked", default=False
)


class Call:
    """A call of a function that is differentiated, and what a plain call would have done.

    Attributes:
        value: what the derivative's own run returned.
        is_sound: it did what a plain call does, so that modes can be compared.
        rounds: derivatives were taken inside, whose last bits depend on what is taken around them.
        active: the differentiated arguments as they were.
    """

    def __init__(
        self, f: Any, args: Any, kwargs: Any, argnums: tuple[int, ...], result: Any = lambda value: value
    ) -> None:
        self.f = f
        self.argnums = argnums
        self.result = result
        self.original = tuple(args), kwargs
        self.value: Any = None
        self.is_sound = False
        self.rounds = False
        self.random = np.random.default_rng(20)
        self.world: Any = None
        try:
            deep_copy(self.original)
            self.given = copies(self.original)
            world = World(f)
            if not shares(self.original, world):
                self.before = world.contents()
                self.put_back = world.saved()
                self.world = world
        except Exception:  # an argument has no copy: a generator, a file
            pass

    def copies(self) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as they were: ints that are differentiated are real numbers."""
        args, kwargs = copies(self.given)
        return merged(list(args), self.argnums, tuple([as_real(args[n]) for n in self.argnums])), kwargs

    @property
    def active(self) -> tuple[Any, ...]:
        """The differentiated arguments as they were."""
        args, _ = self.copies()
        return tuple([args[n] for n in self.argnums])

    @property
    def y(self) -> Any:
        """What of the value is differentiated."""
        return self.result(self.value)

    def has_numbers(self) -> bool:
        """Whether there is something to compare modes by."""
        return any(np.size(leaf.x) for leaf in leaves_of(self.y, ""))

    # -- the plain call ----------------------------------------------------------------------------------------------

    def compare(self, checks: Checks, mode: str, derived: Callable[[], Any]) -> None:
        """Run the derivative's own call, and compare what happens with a plain call on copies."""
        error: BaseException | None = None
        inner = checks.inner
        try:
            with busy():
                self.value = derived()
        except (PlaingradError, KeyboardInterrupt, GeneratorExit):
            raise  # refused: there is nothing to compare
        except BaseException as raised:
            error = raised
        # Outside of the handler: CPython words some errors differently while another is being handled.
        if self.world is None:
            checks.passed_by += 1
        elif not isinstance(error, RecursionError):
            checks.compared += 1
            self.rounds = checks.inner > inner
            self.compare_plainly(mode, error)
        if error is not None:
            raise error

    def compare_plainly(self, mode: str, error: BaseException | None) -> None:
        """Compare what happened with a plain call."""
        now = self.world.contents()
        left = {**given_contents(self.original), **now}
        ids = [] if error is not None else identities(self.value, self.original)
        found = {} if error is not None else contents(self.value, "the result")
        with self.other_runs(now):
            for attempt in range(RETRIES):
                words = self.differences(mode, error, found, ids, left)
                if not words:
                    break
                if attempt < RETRIES - 1:
                    self.restore()
        if words:
            self.complain("\n  ".join(words[:5]))
        self.is_sound = error is None

    def differences(
        self, mode: str, error: Any, found: dict[str, Any], ids: list[str], left: dict[str, Any]
    ) -> list[str]:
        """How a plain call, made now, differs from what happened."""
        seen = self.copies()
        y, raised = None, None
        context = contextvars.copy_context()
        if getattr(self.f, "__plaingrad_derivative__", False):
            context.run(is_checking.set, False)  # a derivative itself, which is checked on its own
        try:
            y = context.run(self.f, *seen[0], **seen[1])
        except CheckError:
            raise
        except Exception as plain:
            raised = plain
        except BaseException as plain:
            if isinstance(plain, (KeyboardInterrupt, GeneratorExit)):
                raise
            raised = plain
        after = {**given_contents(seen), **self.world.contents()}
        if raised is not None and error is None:
            return [f"in {mode} it returns {in_short(self.value)}; a plain call raises {in_short(raised)}"]
        if raised is None and error is not None:
            return [f"in {mode} it raises {in_short(error)}; a plain call returns {in_short(y)}"]
        if raised is not None:
            same = type(raised) is type(error) and not self.changes(
                contents(raised.args, "args"), contents(error.args, "args")
            )
            if not same:
                return [f"in {mode} it raises {in_short(error)}; a plain call raises {in_short(raised)}"]
            return [f"in {mode} {line}" for line in self.changes(after, left)]
        words = self.changes(contents(y, "the result"), found)
        if not words and ids != (plain_ids := identities(y, seen)):
            words = [f"what is handed back: {told(ids)}; by a plain call {told(plain_ids)}"]
        if self.has_int() and words:  # an int is taken as a real number: what comes back may be either
            words = [line for line in words if "the result" not in line]
        return [f"in {mode} {line}" for line in (*words, *self.changes(after, left))]

    def changes(self, expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
        """The places where `found` differs, in words; by rounding it may where derivatives were taken inside."""
        if self.rounds:
            found = {
                path: expected[path] if path in expected and is_close(expected[path], what) else what
                for path, what in found.items()
            }
        return changes(expected, found)

    def has_int(self) -> bool:
        """Whether a differentiated argument is an int."""
        args, _ = self.given
        return any(as_real(args[n]) is not args[n] for n in self.argnums)

    @contextlib.contextmanager
    def other_runs(self, now: dict[str, Any] | None = None) -> Iterator[None]:
        """The function may be called again inside, from where it was called first; then all is as it was left.

        `now` is what the world holds, where that was just looked at.
        """
        changed = bool(changes(self.before, self.world.contents() if now is None else now))
        leave = left_as_it_is(self.world) if changed else None
        try:
            with busy():
                if changed:
                    self.put_back()
                yield
        finally:
            if changed or changes(self.before, self.world.contents()):
                self.put_back()
            if leave is not None:
                leave()

    def restore(self) -> None:
        """Put back what the function can reach, for one more call."""
        if changes(self.before, self.world.contents()):
            self.put_back()

    def plainly(self, *active: Any) -> Any:
        """What is differentiated of the value at other arguments."""
        self.restore()
        args, kwargs = self.copies()
        return self.result(self.f(*merged(args, self.argnums, active), **kwargs))

    # -- the modes ---------------------------------------------------------------------------------------------------

    def compare_forward(self, y_bar: Any, bars: list[Any]) -> None:
        """<y_bar, J x_dot> in forward mode, with <J^T y_bar, x_dot>."""
        self.restore()
        args, kwargs = self.copies()
        active = self.active
        dots = tangent_like(active, random_like(self.random))
        ways = flat(dots, active)
        back, scale = product(bars, ways)
        given: list[Any] = merged([None] * len(args), self.argnums, dots)
        try:
            with quiet():
                _, y_dot = push_unobserved(self.f, tuple(args), tuple(given), kwargs, None, ForwardLevel)
        except PlaingradError:
            self.compare_differences("reverse mode", back, scale, y_bar, ways)
            return
        except Exception as error:
            self.complain(f"in reverse mode it returns; in forward mode it raises {in_short(error)}")
        there, more = product(flat(y_bar, self.y), flat(self.result(y_dot), self.y))

        def again(x: Any) -> float:
            self.restore()
            args, kwargs = self.copies()
            at = tuple(merged(args, self.argnums, x))
            _, y_dot = push_unobserved(self.f, at, tuple(given), kwargs, None, ForwardLevel)
            return product(flat(y_bar, self.y), flat(self.result(y_dot), self.y))[0]

        self.compare_modes(there, back, scale + more, self.usual(y_bar, ways), again)

    def compare_reverse(self, ways: list[Any], y_dots: list[Any]) -> None:
        """The same, beginning with forward mode."""
        self.restore()
        args, kwargs = self.copies()
        y_bar = tangent_like(self.y, random_like(self.random))
        there, scale = product(flat(y_bar, self.y), y_dots)
        run = object.__new__(Run)
        try:
            with quiet():
                run.record(self.f, tuple(args), self.argnums, kwargs, self.result)
                bars = flat(run.pull(copied(y_bar)), self.active)
        except PlaingradError:
            self.compare_differences("forward mode", there, scale, y_bar, ways)
            return
        except Exception as error:
            self.complain(f"in forward mode it returns; in reverse mode it raises {in_short(error)}")
        back, more = product(bars, ways)

        def again(x: Any) -> float:
            self.restore()
            args, kwargs = self.copies()
            run = object.__new__(Run)
            run.record(self.f, tuple(merged(args, self.argnums, x)), self.argnums, kwargs, self.result)
            return product(flat(run.pull(copied(y_bar)), self.active), ways)[0]

        self.compare_modes(there, back, scale + more, self.usual(y_bar, ways), again)

    def usual(self, y_bar: Any, ways: list[Any]) -> float:
        """The size of <y_bar, y> for a relative change of x of one: what a derivative that is zero is small beside."""
        sizes = [
            float(np.max(np.abs(wide(bare(way))) / np.maximum(size_of(bare(leaf.x)), 1e-300), initial=0.0))
            for way, leaf in zip(ways, leaves_of(self.active, ""), strict=True)
            if way is not None
        ]
        return product(flat(y_bar, self.y), [leaf.x for leaf in leaves_of(self.y, "")])[1] * max(
            sizes, default=0.0
        )

    def compare_modes(
        self, there: float, back: float, scale: float, usual: float, again: Callable[[Any], float]
    ) -> None:
        """<y_bar, J x_dot> from both.

        Args:
            there: from forward mode.
            back: from reverse mode.
            scale: the size of their terms.
            usual: the size of the value, in the same terms.
            again: <y_bar, J x_dot> at other arguments, nearby: where that is far away, rounding decides.
        """
        if not (math.isfinite(there) and math.isfinite(back)):
            return  # a pole; the zeros of the two modes stand at different places beside it
        unit = precision_of(self.active, self.y)
        allowed = max(MODES, 2e4 * unit) * scale + (1e3 * unit * usual if usual < math.inf else 0.0)
        if self.rounds:  # a derivative inside may be zero but for rounding
            allowed += 1e4 * unit
        if abs(there - back) <= allowed:
            return
        with quiet(), contextlib.suppress(Exception):
            allowed = max(
                allowed,
                1e3 * max(abs(again(x) - again(self.active)) for x in nearby(self.active, self.random)),
            )
        if not abs(there - back) <= allowed:
            self.complain(
                f"the modes disagree: <y_bar, J x_dot> is {there:.10g} in forward mode, {back:.10g} in reverse mode"
            )

    def compare_differences(self, mode: str, ours: float, scale: float, y_bar: Any, ways: list[Any]) -> None:
        """<y_bar, J x_dot> from one mode, where the other refuses, and from differences of plain calls."""
        active, unit = self.active, precision_of(self.active, self.y)
        with quiet():
            found = along(self.plainly, active, ways, y_bar, unit)
        if not (math.isfinite(ours) and math.isfinite(found.value)):
            return
        allowed = max(DIFFERENCES, 2e4 * unit) * max(scale, abs(found.value)) + 10 * (
            found.error + found.noise
        )
        if abs(ours - found.value) > allowed:
            self.complain(
                f"{mode} and finite differences disagree: <y_bar, J x_dot> is {ours:.10g} and {found.value:.10g}"
            )

    def complain(self, words: str) -> NoReturn:
        """Say what differs."""
        code = getattr(getattr(self.f, "__func__", self.f), "__code__", None)
        place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
        raise CheckError(
            f"checked, a derivative of `{name_of(self.f)}`{place} is not that of a plain call:\n  {words}\n"
            "  It may be a fault of plaingrad's, of a rule, or a function that does something else each time it is "
            "called.\n  See docs: errors#check"
        )


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """What is done inside is not checked."""
    token = is_checking.set(True)
    try:
        yield
    finally:
        is_checking.reset(token)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without warnings: they were given once."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def copies(given: tuple[Any, dict[str, Any]]) -> tuple[Any, dict[str, Any]]:
    """Deep copies of arguments and keyword arguments; an array in two places stays one."""
    memo: dict[int, Any] = {id(x): x for x in (*given[0], *given[1].values()) if type(x) is object}
    for x in mutables(given):
        if isinstance(x, np.ndarray) and x.dtype.kind != "O":
            memo[id(x)] = array_copy(x)
    args, kwargs = given
    return tuple([copied(x, memo) for x in args]), {name: copied(x, memo) for name, x in kwargs.items()}


def mutables(x: Any) -> list[Any]:
    """The arrays and containers in `x`."""
    found: list[Any] = []
    seen: set[int] = set()
    todo = [x]
    while todo:
        x = todo.pop()
        if is_among(type(x), EXACT) or id(x) in seen or (is_leaf(x) and not isinstance(x, np.ndarray)):
            continue
        seen.add(id(x))
        if isinstance(x, np.ndarray):
            found.append(x)
        if is_container(x):
            found.append(x)
            todo += [part for _, part in parts_of(x)]
    return found


def shares(given: Any, world: World) -> bool:
    """Whether an array or container among the arguments is also what the function reads elsewhere."""

    def places(x: Any) -> set[int]:
        return {id(owner_of(part)) for part in mutables(x) if type(part) is not tuple}

    elsewhere = []
    for read, _ in world.places.values():
        with contextlib.suppress(KeyError, ValueError, AttributeError):
            elsewhere.append(read())
    return not places(list(given)).isdisjoint(places(elsewhere))


def given_contents(given: tuple[Any, dict[str, Any]]) -> dict[str, Any]:
    """What is in arguments."""
    args, kwargs = given
    found: dict[str, Any] = {}
    for n, x in enumerate(args):
        found.update(contents(as_real(x), f"argument {n}"))
    for name, x in kwargs.items():
        found.update(contents(x, f"keyword argument {name}"))
    return found


def nearby(x: Any, random: np.random.Generator) -> Iterator[Any]:
    """`x` with every number a few units of rounding away, a few times."""

    def moved(leaf: Any) -> Any:
        if is_exact(leaf):
            return leaf
        step = 8 * precision_of(leaf) * random.uniform(-1.0, 1.0, np.shape(leaf))
        return (
            np.asarray(leaf + leaf * step, leaf.dtype)
            if isinstance(leaf, np.ndarray)
            else leaf + leaf * float(step)
        )

    for _ in range(4):
        yield tuple([mapped(copied(part), moved) for part in x])


def bare(x: Any) -> Any:
    """An array without the class and the units of the program."""
    return np.asarray(x) if isinstance(x, np.ndarray) else x


def is_exact(x: Any) -> bool:
    """Whether numbers of this type are not rounded."""
    return not isinstance(x, (float, complex, np.inexact, np.ndarray))


def is_close(a: Any, b: Any) -> bool:
    """Whether two notes of numbers or arrays are equal up to rounding."""
    if type(a) is not type(b) or not isinstance(a, (Number, Array)) or type(a.x) is not type(b.x):
        return False
    if isinstance(a, Number):
        size = max(abs(a.x), abs(b.x))
        return bool(abs(a.x - b.x) <= type(size)(1e-9) * size + type(size)(1e-12))
    if a.x.shape != b.x.shape or a.x.dtype != b.x.dtype or a.x.dtype.kind not in "fc":
        return False
    size = np.max(np.abs(np.asarray(a.x)), initial=0.0, where=np.isfinite(np.asarray(a.x)))
    return bool(
        np.allclose(a.x, b.x, rtol=1e-9 + 100 * precision_of(a.x), atol=1e-12 + 1e-9 * size, equal_nan=True)
    )


def left_as_it_is(world: World) -> Callable[[], None]:
    """What makes a world again as it is now, with what has come into it."""
    leave = world.saved()
    attributes = [
        (cls, name, vars(cls)[name])
        for cls, names in world.spaces.values()
        for name in vars(cls).keys() - names
        if is_data(vars(cls)[name])
    ]
    variables = [(space, name, space[name]) for space, name in world.absent if name in space]

    def put_back() -> None:
        leave()
        for cls, name, value in attributes:
            setattr(cls, name, value)
        for space, name, value in variables:
            space[name] = value

    return put_back


def product(a: list[Any], b: list[Any]) -> tuple[float, float]:
    """(<a, b>, the sum of the absolute values of its terms), over leaves."""
    total = scale = 0.0
    with np.errstate(all="ignore"):
        for p, q in zip(a, b, strict=True):
            if p is not None and q is not None:
                total += leaf_inner(p, q)
                scale += float(np.sum(np.abs(wide(p)) * np.abs(wide(q))))
    return total, scale
