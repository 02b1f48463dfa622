"""Initial value problems: methods written in Python are followed step by step, the others by variational equations."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import integrate

from plaingrad.rules import derivatives
from plaingrad.rules.scipy.implicit import (
    Rules,
    as_tuple,
    as_users,
    called,
    carrying,
    each_solved,
    fresh,
    is_active,
    mover,
    number,
    ordered,
    outside,
    plainly,
    refuse,
    source_of,
    without_rule,
)
from plaingrad.rules.scipy.integrate.jumps import is_nested
from plaingrad.rules.scipy.integrate.switching import compares, pieces
from plaingrad.rules.scipy.integrate.variational import Steps, between, panels_of, solved_again, values
from plaingrad.rules.scipy.optimize.results import put
from plaingrad.rules.scipy.remembered import numbers_in

RULES = Rules()
BY_STEPS = ("RK23", "RK45", "DOP853")
FEW = 40  # unknowns: bends of a right-hand side are looked for in solutions that would be followed by steps
GRID = 4096  # the finest panels on which a solution by `odeint` is looked at, of its whole time
TOLERANCES = ("rtol", "atol", "max_step", "first_step", "min_step")


def first_step_of(cls: Any) -> Any:
    """The function by which SciPy chooses the first step of a method; None where it is not known."""
    return getattr(sys.modules[cls.__module__], "select_initial_step", None)


stepwise = without_rule(integrate.solve_ivp)


# -- steps are as long as they are -------------------------------------------------------------------------------------


def constant_error(function: Any) -> None:
    """Enter a method that measures the error of a step: how long the next is depends on the inputs, but has no
    derivative. Where the right-hand side jumps, that of the error is as large as the jump, however small the error."""

    def body(order: int, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    RULES.enter(function, "outside", definition=body, source=source_of(constant_error))


measures = [
    vars(base)["_estimate_error_norm"]
    for solver_class in (integrate.RK23, integrate.RK45, integrate.DOP853)
    for base in solver_class.__mro__
    if "_estimate_error_norm" in vars(base)
]
for measure in dict.fromkeys(measures):  # DOP853 has one of its own
    constant_error(measure)

first_step = first_step_of(integrate.RK45)
if first_step is not None:
    measured = without_rule(first_step)

    @RULES.defined(first_step)
    def constant_first_step(function: Any, call: Any, given: dict[str, Any]) -> Any:
        """The length of the first step, which is tried at this level: the right-hand side may remember."""
        return fresh(measured(*call[0], **call[1]))


class Curve(integrate.OdeSolution):
    """A solution between its times, with derivatives; `ts` and `interpolants` are SciPy's."""

    def __init__(self, plain: Any, problem: Any) -> None:
        self.__dict__.update(plain.__dict__)
        self.plain, self.problem = plain, problem

    def __call__(self, t: Any) -> Any:
        """y(t), one column for each time."""
        t = np.asarray(t)
        if is_active(t):
            refuse(integrate.solve_ivp, "its `sol` is asked for at times that depend on the inputs")
        found = np.transpose(self.problem.at(np.reshape(t, (-1,))))
        return carrying(fresh(self.plain(t)), found if t.ndim else found[:, 0])


def is_by_steps(method: Any) -> bool:
    """Whether a method is Python code all through."""
    if isinstance(method, str):
        return method.upper() not in ("RADAU", "BDF", "LSODA")
    return not issubclass(method, (integrate.Radau, integrate.BDF, integrate.LSODA))


@RULES.defined(integrate.solve_ivp)
def solve_ivp(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """y, t where it moves, events and `sol`."""
    by_steps = is_by_steps(given["method"])
    fun, args = given["fun"], () if given["args"] is None else as_tuple(given["args"])
    (start, end), y0 = given["t_span"], np.atleast_1d(np.asarray(given["y0"]))
    if by_steps and not (y0.dtype.kind in "fiu" and compares(called_with(fun, args), start, y0)):
        return stepwise(*call[0], **call[1])
    result = called(function, call)
    if np.iscomplexobj(y0):
        refuse(function, "its values are complex")

    vectorized = given["vectorized"]

    @as_users
    def f(t: Any, y: Any) -> Any:
        if vectorized:
            return np.asarray(fun(t, y[:, None], *args))[:, 0]
        return as_vector(fun(t, y, *args))

    t_eval = given["t_eval"]
    t0 = fresh(float(start))
    if not (is_active(list(given.values())) or depends(f, fresh(result.t), fresh(result.y))):
        return result
    options = {name: x for name, x in given["options"].items() if name in TOLERANCES}
    options = {"method": given["method"], **options}
    problem = in_pieces(function, f, t0, y0, start, fresh(result.t), options)
    if problem is None and by_steps:
        return stepwise(*call[0], **call[1])
    if problem is None:
        problem = Solution(function, f, t0, y0, start, fresh(result.t), options)
    put_times(problem, result, end, t_eval)
    if given["events"] is not None:
        put_events(problem, result, given["events"], args)
    if result.sol is not None:
        put(result, "sol", Curve(result.sol, problem))
    return result


@mover
def called_with(f: Any, args: tuple[Any, ...]) -> Any:
    """f of time and state."""
    return as_users(lambda t, y: f(t, y, *args)) if args else f


def in_pieces(
    function: Any, f: Any, t0: Any, y0: Any, start: Any, times: Any, options: dict[str, Any]
) -> Any:
    """The solution to the last time, put together where f switches at times that move; None if there are none."""
    if times[-1] == t0:
        return None
    solve = lambda: solved_again(function, f, (t0, times[-1]), y0, options)
    closely = not is_by_steps(options["method"]) or y0.size <= FEW
    return pieces(Solution, (function, options), f, t0, y0, start, solve, closely)


def as_vector(z: Any) -> Any:
    """What a right-hand side returned, in memory of its own: it may return the same array each time."""
    if not is_vector(z):
        z = np.reshape(np.asarray(z), (-1,))
    return z * 1.0


@mover
def is_vector(z: Any) -> bool:
    """Whether nothing has to be done."""
    return type(z) is np.ndarray and z.ndim == 1


def depends(f: Any, times: Any, y: Any) -> bool:
    """Whether f depends on the inputs though they are not seen in it: at some places of the solution, or perhaps."""
    some = range(0, len(times), 1 + len(times) // 16)
    return is_active([f(float(times[k]), y[:, k]) for k in some]) or is_active(numbers_in(f))


class Solution:
    """y at collocation points, with derivatives, from which it is known elsewhere."""

    def __init__(
        self,
        function: Any,
        f: Any,
        t0: Any,
        y0: Any,
        start: Any,
        times: Any,
        options: dict[str, Any],
        steps: Any = None,
    ) -> None:
        self.function, self.f, self.t0 = function, f, t0
        last = times[-1]
        self.y0 = y0 * 1.0
        if is_active(start):
            self.only_once()
            self.y0 = self.y0 - slope_outside(f, t0, y0) * (start - t0)
        self.is_point = bool(last == t0)
        if self.is_point:
            self.marks, self.y = None, None
        else:
            found = None if steps is None else panels_of(steps, options)
            if found is None:
                found = panels_of(solved_again(function, f, (t0, last), y0, options), options)
            self.marks, known = found
            if is_nested():
                self.y0 = moved_to(f, t0, self.y0, float(self.marks[0]))
            self.y = values(function, f, self.marks, known, self.y0)

    def only_once(self) -> None:
        """Refuse higher Taylor coefficients."""
        if ordered() > 1:
            refuse(self.function, "Taylor mode does not know times that move; RK45 is followed by steps")

    def at(self, times: Any) -> Any:
        """y at constant times, one row each."""
        if self.is_point:
            return np.stack([self.y0 for _ in range(len(times))])
        return between(self.marks, self.y, times)


def moved_to(f: Any, t0: Any, y0: Any, t: float) -> Any:
    """y at a constant time t, which t0 is equal to, and from which it moves further out: a step of length zero."""
    h = t - t0
    a = f(t0, y0)
    b = f(t0 + h / 2, y0 + h / 2 * a)
    c = f(t0 + h / 2, y0 + h / 2 * b)
    return y0 + h / 6 * (a + 2 * b + 2 * c + f(t0 + h, y0 + h * c))


@outside
def slope_outside(order: int, f: Any, t: Any, y: Any) -> Any:
    """f as a constant of this level."""
    return np.asarray(f(t, y)) * 1.0


def put_times(problem: Solution, result: Any, end: Any, t_eval: Any) -> None:
    """y of a result, and t where it moves with `t_eval` or the end."""
    times = fresh(result.t)
    y = problem.at(times)
    moved: Any = None
    if is_active(t_eval):
        moved = np.asarray(t_eval)[: len(times)]
    elif t_eval is None and is_active(end) and result.status == 0:
        moved = np.concatenate([times[:-1], np.reshape(end * 1.0, (1,))])
    if moved is not None:
        problem.only_once()
        slopes = np.stack([slope_outside(problem.f, float(times[k]), y[k]) for k in range(len(times))])
        y = y + slopes * np.reshape(moved - times, (-1, 1))
        put(result, "t", carrying(times, moved))
    put(result, "y", carrying(fresh(result.y), np.transpose(y)))


@mover
def as_list(events: Any) -> list[Any]:
    """Events as SciPy takes them: one, or several."""
    return [events] if callable(events) else list(events)


def put_events(problem: Solution, result: Any, events: Any, args: Any) -> None:
    """Times of events move with what they depend on; a terminal one is the last time, too."""
    times_found, values_found = [], []
    for k, event in enumerate(as_list(events)):
        times = fresh(np.asarray(result.t_events[k]))
        moved, states = [], []
        for j in range(len(times)):
            t, y = moved_event(problem, event, args, float(times[j]))
            moved.append(t)
            states.append(y)
        times_found.append(np.stack(moved) if moved else times)
        values_found.append(
            carrying(fresh(result.y_events[k]), np.stack(states)) if states else result.y_events[k]
        )
        if result.status == 1 and moved and times[-1] == result.t[-1]:
            put(
                result,
                "t",
                carrying(fresh(result.t), np.concatenate([result.t[:-1], np.reshape(moved[-1], (1,))])),
            )
            last = np.concatenate([result.y[:, :-1], np.reshape(states[-1], (-1, 1))], 1)
            put(result, "y", carrying(fresh(result.y), last))
    put(result, "t_events", times_found)
    put(result, "y_events", values_found)


def moved_event(problem: Solution, event: Any, args: Any, t: Any) -> tuple[Any, Any]:
    """(time, state) of an event near constant t: g(t, y(t)) = 0."""
    y = problem.at(np.array([t]))[0]
    g = number(np.asarray(event(t, y, *args)))
    if not is_active(g):
        return np.asarray(t) * 1.0, y
    problem.only_once()
    slope, rate = event_slope(problem.function, event, args, problem.f, t, y)
    time = each_solved(t, g, slope)
    return time, y + rate * (time - t)


@outside
def event_slope(order: int, function: Any, event: Any, args: Any, f: Any, t: Any, y: Any) -> tuple[Any, Any]:
    """(dg/dt along the solution, dy/dt), constants of this level."""
    rate = np.asarray(f(t, y)) * 1.0

    def along(s: Any) -> Any:
        return number(np.asarray(event(t + s, y + s * rate, *args)))

    slope = derivatives.along(along, 0.0, 1.0)
    if slope == 0:
        refuse(function, "an event is touched, not crossed: its time has no derivative")
    return slope, rate


# -- older names -------------------------------------------------------------------------------------------------------


@RULES.defined(integrate.odeint)
def odeint(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """LSODA at given times; one row for each."""
    outcome = called(function, call)
    func, args, first = given["func"], as_tuple(given["args"]), given["tfirst"]
    t, y0 = np.asarray(given["t"]), np.atleast_1d(np.asarray(given["y0"]))
    values_found = fresh(outcome[0] if given["full_output"] else outcome)

    @as_users
    def f(t: Any, y: Any) -> Any:
        return as_vector(func(t, y, *args) if first else func(y, t, *args))

    times = fresh(t * 1.0)
    if not (is_active(list(given.values())) or depends(f, times, np.transpose(values_found))):
        return outcome
    tolerances = {name: 1.49012e-8 if given[name] is None else given[name] for name in ("rtol", "atol")}
    start = t[0] if is_active(t) else float(times[0])
    again = by_odeint(function, given, y0, times, options_of(call))
    options = {"method": "LSODA", **tolerances}
    problem = in_pieces(function, f, float(times[0]), y0, start, times, options)
    if problem is None:
        problem = Solution(function, f, float(times[0]), y0, start, times, options, again)
    y = problem.at(times)
    if is_active(t):
        problem.only_once()
        slopes = np.stack([slope_outside(f, float(times[k]), y[k]) for k in range(len(times))])
        y = y + slopes * np.reshape(t - times, (-1, 1))
    y = carrying(values_found, y)
    return (y, outcome[1]) if given["full_output"] else y


@mover
def options_of(call: Any) -> Any:
    """A call of `odeint` without its first three arguments, and without more outputs."""
    args, kwargs = call
    return args[3:], {name: x for name, x in kwargs.items() if name not in ("func", "y0", "t", "full_output")}


@plainly
def by_odeint(function: Any, given: dict[str, Any], y0: Any, times: Any, call: Any) -> Any:
    """The solution by `odeint` itself, which is many times as quick as `solve_ivp`; None where that is not possible."""
    args, kwargs = call
    sign = np.sign(times[-1] - times[0])
    if given["full_output"] and len(args) > 3 or not np.all(np.diff(times) * sign > 0):
        return None

    def at(t: Any) -> Any:
        order = np.unique(np.concatenate([times[:1], t]))[:: int(sign)]
        y = integrate.odeint(given["func"], y0, order, *args, **kwargs)
        return y[np.searchsorted(sign * order, sign * t)]

    return Steps(np.linspace(times[0], times[-1], GRID + 1), at, False, 16)  # each try solves it anew


@RULES.defined(integrate.ode.integrate)
def ode_integrate(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """From the state that the object has to a new one, which it keeps."""
    solver = given["self"]
    end, f_args = given["t"], solver.f_params
    t0, y0 = solver.t, np.atleast_1d(np.asarray(solver._y)) * 1.0
    name = type(solver._integrator).__name__
    y = called(function, call)

    right_side = solver.f

    @as_users
    def f(t: Any, y: Any) -> Any:
        return as_vector(right_side(t, y, *f_args))

    start = fresh(float(t0))
    ends = np.array([start, fresh(float(solver.t))])
    if not (
        is_active((t0, end, y0, solver.f, f_args)) or depends(f, ends, np.stack([fresh(y0), fresh(y)], 1))
    ):
        return y
    if np.iscomplexobj(y0) or name == "zvode":
        refuse(integrate.ode, "its values are complex")
    if given["step"] or given["relax"]:
        refuse(integrate.ode, "it goes one step, of a length that is the solver's own (step, relax)")
    method = (
        "DOP853" if name in ("dopri5", "dop853") else "Radau"
    )  # LSODA of older SciPy runs one problem at a time
    options = {
        "rtol": getattr(solver._integrator, "rtol", 1e-6),
        "atol": getattr(solver._integrator, "atol", 1e-12),
    }
    options = {"method": method, **options}
    problem = in_pieces(integrate.ode, f, start, y0, t0, ends, options)
    if problem is None:
        problem = Solution(integrate.ode, f, start, y0, t0, ends, options)
    found = problem.at(np.array([fresh(float(solver.t))]))[0]
    if is_active(end):
        problem.only_once()
        found = found + slope_outside(f, fresh(float(end)), found) * (end - fresh(float(end)))
    state = carrying(fresh(y), np.reshape(found, np.shape(y)))
    put(solver, "_y", state)
    put(solver, "t", end)
    return state


RULES.refused("its values are complex", integrate.complex_ode.integrate)
