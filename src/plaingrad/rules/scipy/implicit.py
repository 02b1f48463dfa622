"""The implicit function theorem for solvers: what a solver found is constant at the level that differentiates it, and
one Newton step on equations that it solves gives it the derivative.

    x = z - J^-1 F(z, parameters),  z and J = dF/dz constants of this level, F(z) = 0

The solver, and J, are run one level out, where they are differentiated in turn if another derivative is taken there:
so every order is right. Nothing of a solver is ever differentiated itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from types import FunctionType
from typing import Any, NoReturn

import numpy as np

from plaingrad.errors import MissingRuleError
from plaingrad.rulebook import Rule
from plaingrad.rules import derivatives
from plaingrad.rules.pushforwards import dot_of, varies
from plaingrad.rules.scipy import remembered
from plaingrad.rules.scipy.contents import contents_of, is_same_contents, put_back
from plaingrad.rules.scipy.parameters import Parameters, bound
from plaingrad.tangents import ZeroTangent

NEAR = 1e-2  # the most that a solution may be off, of its size, measured by Newton steps
AT_ROOT = 1e-4  # the same for roots, which are not moved to the exact one
LARGEST = 4000  # unknowns whose equations get a dense matrix
_rules: list[Rule] = []


def source_of(f: Any) -> str:
    """Where a rule is."""
    return f"{f.__code__.co_filename}:{f.__code__.co_firstlineno}"


class Rules:
    """The rules of one module of SciPy's, gathered in order."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []

    def enter(self, function: Any, kind: Any, **facts: Any) -> None:
        """Gather one rule; of a function that SciPy lacks, None, nothing."""
        if function is not None:
            self.rules.append(Rule(function, kind, **{"source": source_of(source_of), **facts}))

    def defined(self, *functions: Any) -> Callable[[Any], Any]:
        """Decorate a definition of functions of the same parameters. It gets the function and its arguments by name."""

        def enter(definition: Any) -> Any:
            source = source_of(definition)
            for function in functions:
                if function is not None:
                    self.enter(function, "composed", definition=by_name(function, definition), source=source)
            return definition

        return enter

    def refused(self, why: str, *functions: Any) -> None:
        """Enter functions that have a derivative which nobody computes here."""
        for function in functions:
            if function is not None:
                self.enter(function, "full", rrule=refusing(function, why), refuses=why)

    def __iter__(self) -> Iterator[Rule]:
        return iter([*_rules, *self.rules])


def helpers(*rules: Rule) -> None:
    """Gather rules of helpers."""
    _rules.extend(rules)


def refusing(function: Any, why: str) -> Callable[..., Any]:
    """A rule that refuses."""

    def refused_rrule(*args: Any, **kwargs: Any) -> Any:
        refuse(function, why)

    return refused_rrule


def refuse(function: Any, why: str) -> NoReturn:
    """Raise what says why a call of `function` has no derivative."""
    module = ".".join(str(getattr(function, "__module__", None) or "scipy").split(".")[:2])
    name = str(getattr(function, "__name__", None) or "a function of FITPACK's").removeprefix("function ")
    raise MissingRuleError(
        f"`{module}.{name}` {derivatives.where()}, has no derivative here: {why}.\n"
        "  If it does not matter, give it plaingrad.stop_gradient(x); otherwise: plaingrad.rrule.\n"
        "  See docs: errors#missing-rule"
    )


def mover(f: Any) -> Any:
    """Decorate a helper that only moves references; it runs as it is."""
    _rules.append(Rule(f, "mover", source=source_of(f)))
    return f


@mover
def start_keeping(kept: Any) -> Any:
    """From now on runs one level out leave no trace."""
    return remembered.KEPT.set(kept)


@mover
def stop_keeping(token: Any) -> None:
    """As before that."""
    remembered.KEPT.reset(token)


for _moves in (*remembered.MOVERS, bound):
    mover(_moves)


@mover
def as_users(f: Any) -> Any:
    """f, a closure of a rule's around a function of the program: what it has captured is looked at like that of such."""
    f.__module__ = "plaingrad_program"
    return f


def without_rule(f: Any) -> Any:
    """The Python code of a function, which is followed like a user's."""
    copy = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    copy.__kwdefaults__ = f.__kwdefaults__
    return copy


def outside(body: Any) -> Any:
    """Decorate code that runs one level out, so that its results are constants of this one.

    Its first argument is how many derivatives this level takes at once.
    """

    def called(*args: Any, **kwargs: Any) -> Any:
        return body(1, *args, **kwargs)

    called.__name__ = called.__qualname__ = body.__name__
    _rules.append(Rule(called, "outside", definition=leaving_no_trace(body), source=source_of(body)))
    return called


def leaving_no_trace(body: Any) -> Any:
    """body, in which what functions of the program keep from call to call is as before the solver, and after which it is
    as before the body."""

    def run(*args: Any, **kwargs: Any) -> Any:
        kept, before = remembered.state()
        if kept is None:
            return body(*args, **kwargs)
        arrays = kept.arrays
        contents = [np.array(a) for a in arrays]
        for k in remembered.begin_run(kept, contents):
            arrays[k][...] = kept.first[k]
        z = body(*args, **kwargs)
        changed = remembered.differing(arrays, contents)
        left = [np.array(arrays[k]) if k in changed else contents[k] for k in range(len(arrays))]
        remembered.end_run(kept, before, left, args[1] if len(args) > 1 else None)
        for k in changed:
            arrays[k][...] = contents[k]
        return z

    return run


def settle(kept: Any, z: Any) -> None:
    """Leave what functions of the program keep as the solver's run has left it; numbers that were not computed again at
    this level refuse their derivatives."""
    if kept.left is None:
        return
    changed = remembered.changed(kept)
    arrays = remembered.differing(kept.arrays, kept.left[1])
    if not changed and not arrays:
        return
    active = [x for x in [*remembered.numbers_of(z), *kept.numbers] if is_active(x)]
    for holder, contents, keys in changed:
        for key in keys if active else ():
            contents[key] = kept_number(contents[key], active[0], kept.seen)
        put_back(holder, contents)
    for k in arrays:
        kept.arrays[k][...] = (
            kept_number(kept.left[1][k], active[0], kept.seen) if active else kept.left[1][k]
        )


def kept_number(x: Any, r: Any, seen: dict[int, Any]) -> Any:
    """x, whose numbers refuse their derivatives; what was there before the solver ran, which is seen, has its own."""
    if isinstance(x, (float, complex, np.inexact)) or (isinstance(x, np.ndarray) and x.dtype.kind in "fc"):
        return x if is_active(x) else underived(x, r, "a number that a function kept while a solver ran it")
    if not remembered.may_hold(x, seen):
        return x
    seen[id(x)] = x
    if isinstance(x, tuple):
        return remembered.tuple_like(x, [kept_number(part, r, seen) for part in x])
    contents = contents_of(x)
    new = {key: kept_number(part, r, seen) for key, part in contents.items()}
    if not is_same_contents(new, contents):
        put_back(x, new)
    return x


def plainly(f: Any) -> Any:
    """Decorate code that runs outside of every level: its results are nobody's derivatives."""

    def called(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)

    @leaving_no_trace
    def once_more(order: int, *args: Any, **kwargs: Any) -> Any:
        return called(*args, **kwargs)

    called.__name__ = called.__qualname__ = f.__name__
    _rules.append(Rule(called, "outside", definition=once_more, source=source_of(f)))
    return called


def is_active(x: Any) -> bool:
    """Whether `x` depends on the inputs at this level."""
    return False


_rules.append(Rule(is_active, "asks", source=source_of(is_active)))


# -- calls -------------------------------------------------------------------------------------------------------------


def by_name(function: Any, definition: Any) -> Any:
    """definition(function, call, given) as a definition of `function`; call: the arguments as they came."""
    parameters = Parameters(signature(function))

    def defined(*args: Any, **kwargs: Any) -> Any:
        # the solver fills those of functions that it is given, and inside
        token = derivatives.PASSING_CACHES.set(True)
        kept = remembered.reached(function, args, kwargs)
        if kept is not None and kept.frames and is_active(kept.frames):
            refuse(function, "a function of its takes items from a generator, whose state is not put back")
        if kept is not None and not kept.is_whole and is_active(kept.numbers):
            refuse(function, "a function of its keeps something, and holds too much to find out what")
        keeping = start_keeping(kept)
        try:
            z = definition(function, (args, kwargs), bound(parameters, args, kwargs))
        finally:
            stop_keeping(keeping)
            derivatives.PASSING_CACHES.reset(token)
        if kept is not None:
            settle(kept, z)
        return z

    return defined


@outside
def called(order: int, function: Any, call: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    """What the function gives, as a constant."""
    args, kwargs = call
    return function(*args, **kwargs)


@outside
def ordered(order: int) -> int:
    """How many derivatives this level takes at once."""
    return order


def as_tuple(args: Any) -> tuple[Any, ...]:
    """Further arguments of a user's function, which SciPy takes one by one, too."""
    return args if isinstance(args, tuple) else (args,)


def number(z: Any) -> Any:
    """What a user's function of numbers returned, as one number."""
    return z.reshape(())[()] if isinstance(z, np.ndarray) else z


def copied(x: Any) -> Any:
    """A number or array like x that is another object."""
    return x * 1.0 if isinstance(x, (float, np.floating, complex)) else np.array(x)


@outside
def fresh(order: int, x: Any) -> Any:
    """A constant copy of a solution, which may be one of the solver's arguments."""
    return copied(x)


# -- steps -------------------------------------------------------------------------------------------------------------


def solved(x: Any, r: Any, jacobian: Any) -> Any:
    """x, with the derivative of x - jacobian^-1 r: r is a vector, x of any shape with as many entries."""
    return copied(x)


def solved_rrule(x: Any, r: Any, jacobian: Any) -> Any:
    """x_bar goes to r_bar = -jacobian^-T x_bar, and to x itself, which further out is the same root."""

    def solved_pullback(x_bar: Any) -> tuple[Any, ...]:
        r_bar = -np.linalg.solve(np.conj(np.swapaxes(jacobian, 0, 1)), np.reshape(x_bar, (-1,)))
        return x_bar, np.reshape(r_bar, np.shape(r)), ZeroTangent

    return x * 1.0, solved_pullback


def solved_frule(x: Any, r: Any, jacobian: Any) -> Any:
    """The same forwards; tangents may have a leading axis."""

    def solved_pushforward(dots: Any) -> Any:
        x_dot, r_dot = dot_of(dots, 0), dot_of(dots, 1)
        if not varies(r_dot):
            return x_dot
        size = jacobian.shape[0]
        moved = np.reshape(r_dot, (-1, size))
        z_dot = -np.linalg.solve(jacobian, np.swapaxes(moved, 0, 1))
        lead = np.shape(r_dot)[: np.ndim(r_dot) - np.ndim(r)]
        z_dot = np.reshape(np.swapaxes(z_dot, 0, 1), lead + np.shape(x))
        return z_dot if not varies(x_dot) else x_dot + z_dot

    return x * 1.0, solved_pushforward


def each_solved(x: Any, r: Any, slope: Any) -> Any:
    """x, with the derivative of x - r / slope, one by one."""
    return copied(x)


def each_solved_rrule(x: Any, r: Any, slope: Any) -> Any:
    """x_bar goes to r_bar = -x_bar / slope."""
    return x * 1.0, lambda x_bar: (x_bar, -x_bar / np.conj(slope), ZeroTangent)


def each_solved_frule(x: Any, r: Any, slope: Any) -> Any:
    """The same forwards."""

    def each_solved_pushforward(dots: Any) -> Any:
        x_dot, r_dot = dot_of(dots, 0), dot_of(dots, 1)
        if not varies(r_dot):
            return x_dot
        return -r_dot / slope if not varies(x_dot) else x_dot - r_dot / slope

    return x * 1.0, each_solved_pushforward


def carrying(value: Any, y: Any) -> Any:
    """`value`, which is SciPy's, with the derivative of y, which is the same but for rounding."""
    return copied(value)


def carrying_rrule(value: Any, y: Any) -> Any:
    """All of it is that of y."""
    return value * 1.0, lambda z_bar: (ZeroTangent, z_bar)


def carrying_frule(value: Any, y: Any) -> Any:
    """The same forwards."""
    return value * 1.0, lambda dots: dot_of(dots, 1)


def underived(value: Any, r: Any, name: str) -> Any:
    """`value`, which depends on the inputs as r does, and whose derivative nobody computes."""
    return copied(value)


def underived_rrule(value: Any, r: Any, name: str) -> Any:
    """Refused if it is needed."""

    def underived_pullback(z_bar: Any) -> tuple[Any, ...]:
        if np.any(z_bar):
            raise MissingRuleError(
                f"{name} depends on the differentiated inputs, and has no derivative here.\n"
                "  If it does not matter, use plaingrad.stop_gradient(x).\n  See docs: errors#missing-rule"
            )
        return ZeroTangent, ZeroTangent, ZeroTangent

    return value * 1.0, underived_pullback


def underived_frule(value: Any, r: Any, name: str) -> Any:
    """Forwards nobody knows whether it is needed: nan."""

    def underived_pushforward(dots: Any) -> Any:
        r_dot = dot_of(dots, 1)
        if not varies(r_dot):
            return ZeroTangent
        lead = np.shape(r_dot)[: np.ndim(r_dot) - np.ndim(r)]
        z_dot = np.full(lead + np.shape(value), np.nan)
        return z_dot if z_dot.ndim else float("nan")

    return value * 1.0, underived_pushforward


for _function, _back, _on in (
    (solved, solved_rrule, solved_frule),
    (each_solved, each_solved_rrule, each_solved_frule),
    (carrying, carrying_rrule, carrying_frule),
    (underived, underived_rrule, underived_frule),
):
    _rules.append(
        Rule(_function, "full", _back, frule=_on, chunked_frule=_on, affine=True, source=source_of(_back))
    )


# -- solutions ---------------------------------------------------------------------------------------------------------


def is_near(step: Any, x: Any, near: float = NEAR) -> bool:
    """Whether a Newton step says that x is a solution."""
    return bool(np.all(np.abs(step) <= near * (1.0 + np.max(np.abs(x), initial=0.0))))


@outside
def slopes_at(order: int, function: Any, f: Any, x: Any) -> Any:
    """dF/dx, one by one, at a root."""
    r, slope = derivatives.value_along(f, x, x * 0.0 + 1.0)
    if not np.all(np.isfinite(slope)) or not np.all(slope != 0) or not is_near(r / slope, x, AT_ROOT):
        refuse(
            function, "what was found is no simple root; the solver has not converged, or the root is double"
        )
    if not np.any(r):
        return slope  # a pole has no value 0
    far = 8.0 * abs(r / slope) + 1e-9 * (1.0 + abs(x))
    is_lower = size_of(f, x + far) < abs(r)
    if np.any(is_lower) and np.any(is_lower & (size_of(f, x - far) < abs(r))):
        refuse(function, "the sign changes at a pole, not at a root")
    return slope


def size_of(f: Any, x: Any) -> Any:
    """|f(x)| beside a root, where f need not be defined."""
    try:
        return np.abs(f(x))
    except Exception:  # whatever it raises: the program's own run has not been there
        return np.inf


@outside
def jacobian_at(order: int, function: Any, f: Any, x: Any) -> Any:
    """dF/dx of a vector by a vector at a root."""
    if np.size(x) > LARGEST:
        refuse(
            function, f"its {np.size(x)} unknowns are more than the {LARGEST} that a dense matrix is made for"
        )
    matrix = derivatives.jacobian(f, x)
    check_step(function, matrix, f(x), x)
    return matrix


def check_step(function: Any, matrix: Any, r: Any, x: Any) -> None:
    """Refuse where equations are singular, or not solved."""
    try:
        step = np.linalg.solve(matrix, r)
    except np.linalg.LinAlgError:
        refuse(function, "the equations that the solution solves are singular there")
    if not np.all(np.isfinite(step)) or not is_near(step, x, AT_ROOT):
        refuse(
            function, "what was found is no regular solution; the solver has not converged, or it is singular"
        )


def stepped(step: Any, equations: Any, x: Any, r: Any, facts: Any) -> Any:
    """The solution x of equations with residual r after one step(x, r, facts) for each derivative taken at once."""
    for _ in range(ordered()):
        x = step(x, r, facts)
        r = equations(x) if ordered() > 1 else r
    return x


def at_root(function: Any, f: Any, x: Any) -> Any:
    """The root x of a vector f(x), x of any shape, with its derivative."""
    flat = np.reshape(x, (-1,))
    r = f(flat)
    if not is_active(r):
        return x
    matrix = jacobian_at(function, f, flat)
    flat = stepped(solved, f, flat, r, matrix)
    return np.reshape(flat, np.shape(x)) if np.ndim(x) else flat[0]


def at_roots(function: Any, f: Any, x: Any) -> Any:
    """Roots of one equation each, with their derivatives."""
    r = f(x)
    if not is_active(r):
        return x
    return stepped(each_solved, f, x, r, slopes_at(function, f, x))
