"""Random programs under random compositions of derivative operators, against differences in 50 digits.

    python -m tests.hunts.operators --count 2000 --seed 1

A program is a function of one number: steps in many styles (fused arithmetic, containers, objects, arrays, writes in
place, rules, conditions, loops), each with its meaning for mpmath's numbers. An operator makes of a function another
one, k derivatives further on (k = 0, 1, 2). What a composition of operators gives is compared with mpmath's n-th
derivative of the meaning. Refusals are counted, and shown with `--refusals`; whatever differs is printed, with a seed
that shows it again.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import linecache
import math
import random
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

import plaingrad as pg

mpmath.mp.dps = 50
RELATIVE = 1e-7  # Taylor coefficients in float64, up to the fourth order

# -- rules of the user's, of every kind --------------------------------------------------------------------------------


def twisted(a, b):
    return a * b + math.sin(a)


@pg.rrule(twisted)
def twisted_rrule(a, b):
    def twisted_pullback(y_bar):
        return y_bar * (b + math.cos(a)), y_bar * a

    return twisted(a, b), twisted_pullback


def bent(a, b):
    return a * b * b


@pg.frule(bent)
def bent_frule(f, a, b):
    x, x_dot, y, y_dot = a.primal, a.tangent, b.primal, b.tangent
    return pg.Dual(f.primal(x, y), x_dot * y * y + 2.0 * x * y * y_dot)


def rolled(a, b):
    held = [a, b]
    return held[0] * held[1] + math.tanh(held[0])


def rolled_too(a, b):  # its rule is derived from the bytecode of another function
    return rolled(a, b)


pg.rrule(rolled_too)(pg.build_rrule(rolled))


def rolled_again(a, b):
    return rolled(a, b)


rolled_by = pg.build_rrule(rolled)


@pg.rrule(rolled_again)
def rolled_again_rrule(a, b):
    y, pullback = rolled_by(a, b)

    def rolled_again_pullback(y_bar):
        return pullback(y_bar)[1:]

    return y, rolled_again_pullback


def rolled_by_vjp(a, b):
    return rolled(a, b)


@pg.rrule(rolled_by_vjp)
def rolled_by_vjp_rrule(a, b):
    return pg.vjp(rolled, a, b)


def packed(a, b):
    return {"sum": a + b, "product": a * b}


@pg.rrule(packed)
def packed_rrule(a, b):
    def packed_pullback(y_bar):
        s, p = y_bar["sum"], y_bar["product"]
        return s + p * b, s + p * a

    return packed(a, b), packed_pullback


class Box:
    def __init__(self, v, w):
        self.v = v
        self.w = w

    def mixed(self):
        return self.v * self.w + self.v

    @property
    def half(self):
        return 0.5 * self.v


class Number:
    def __init__(self, v):
        self.v = v

    def __mul__(self, other):
        return Number(self.v * (other.v if isinstance(other, Number) else other))

    __rmul__ = __mul__

    def __add__(self, other):
        return Number(self.v + (other.v if isinstance(other, Number) else other))


M = np.array([[0.3, -0.2, 0.5], [0.1, 0.4, -0.3], [0.2, 0.2, 0.6]])
mp = mpmath.mp


def mp_m(k, v):
    return sum(mpmath.mpf(float(M[k, j])) * v[j] for j in range(3))


# -- steps: lines of a program over a, b, and what they mean ------------------------------------------------------------

Meaning = Callable[[Any, Any], tuple[Any, Any]]
STEPS: list[tuple[str, str, Meaning]] = [
    ("fused", "a = a * b + 0.3 * a - b", lambda a, b: (a * b + mp.mpf(0.3) * a - b, b)),
    ("square", "a, b = b, a ** 2 + 0.5", lambda a, b: (b, a**2 + mp.mpf(0.5))),
    ("quotient", "a = a / (2.0 + b * b)", lambda a, b: (a / (2 + b * b), b)),
    ("power", "b = (1.5 + a * a) ** 1.5", lambda a, b: (a, (mp.mpf(1.5) + a * a) ** mp.mpf(1.5))),
    ("cube", "b = b ** 3 - a", lambda a, b: (a, b**3 - a)),
    ("list", "a = [a][0] * a * b", lambda a, b: (a * a * b, b)),
    ("swap", "c = [a, b]; c.reverse(); a, b = c[0] * c[1], c[0]", lambda a, b: (a * b, b)),
    ("dict", "d = {'k': a, 'l': b}; d['k'] *= b; a = d['k'] + d['l']", lambda a, b: (a * b + b, b)),
    ("object", "p = Box(a, b); p.v = p.v * p.w; a = p.mixed(); b = p.half",
     lambda a, b: (a * b * b + a * b, a * b / 2)),
    ("dunder", "n = Number(a) * b + Number(b) * Number(a); a = n.v", lambda a, b: (2 * a * b, b)),
    ("reflected", "a = (b * Number(a) + 0.25).v", lambda a, b: (a * b + mp.mpf(0.25), b)),
    ("sum", "a = sum([a, b, a * b])", lambda a, b: (a + b + a * b, b)),
    ("generator", "a = sum(t * b for t in (a, b, 0.5))", lambda a, b: (b * (a + b + mp.mpf(0.5)), b)),
    ("sin", "a = math.sin(a) * math.exp(0.2 * b)", lambda a, b: (mp.sin(a) * mp.exp(mp.mpf(0.2) * b), b)),
    ("hypot", "b = math.hypot(a, b + 2.5)", lambda a, b: (a, mp.hypot(a, b + mp.mpf(2.5)))),
    ("atan2", "b = math.atan2(a, 2.0 + b * b)", lambda a, b: (a, mp.atan(a / (2 + b * b)))),
    ("log", "a = math.log(2.0 + a * a, 3.0) * b", lambda a, b: (mp.log(2 + a * a) / mp.log(3) * b, b)),
    ("fsum", "a = math.fsum([a, b * a])", lambda a, b: (a + b * a, b)),
    ("tanh", "a, b = math.tanh(b), math.sqrt(1.0 + a * a)", lambda a, b: (mp.tanh(b), mp.sqrt(1 + a * a))),
    ("pow", "a = math.pow(1.2 + b * b, 0.7) + a", lambda a, b: ((mp.mpf(1.2) + b * b) ** mp.mpf(0.7) + a, b)),
    ("array", "u = np.array([a, b, a * b]); a = float(u @ u)",
     lambda a, b: (a * a + b * b + (a * b) ** 2, b)),
    ("arraysum", "u = np.array([a, b, 0.5]); a = (u * u + np.sin(u)).sum(); a = float(a)",
     lambda a, b: (a * a + b * b + mp.mpf(0.25) + mp.sin(a) + mp.sin(b) + mp.sin(mp.mpf(0.5)), b)),
    ("npscalar", "u = np.array([a, b]); a = u[0] * u[1] + np.exp(0.3 * u[0])",
     lambda a, b: (a * b + mp.exp(mp.mpf(0.3) * a), b)),
    ("matmul", "u = M @ np.array([a, b, a]); a, b = float(u[1] * u[0]), float(u[2])",
     lambda a, b: (mp_m(1, (a, b, a)) * mp_m(0, (a, b, a)), mp_m(2, (a, b, a)))),
    ("dot", "u = np.dot(M, np.array([a, 0.5, b])); a = float(u.prod())",
     lambda a, b: (math.prod(mp_m(k, (a, mp.mpf(0.5), b)) for k in range(3)), b)),
    ("einsum", "u = np.array([a, b, 1.0]); a = float(np.einsum('i,ij,j->', u, M, u))",
     lambda a, b: (sum(x * mp_m(k, (a, b, 1)) for k, x in enumerate((a, b, 1))), b)),
    ("outer", "u = np.outer([a, b], np.array([b, 0.5])); a = float(u[0, 0] + u[1, 1] * u[0, 1])",
     lambda a, b: (a * b + b * a / 4, b)),
    ("writes", "u = np.zeros(3); u[0] = a; u[1:] = b; u *= a; u += u[0]; a = float(u[0] + 0.1 * u[2])",
     lambda a, b: (2 * a * a + mp.mpf(0.1) * (a * b + a * a), b)),
    ("views", "u = np.array([[a, b], [b, 0.5]]); v = u.T[::-1]; v[0] *= a; u[0] -= 0.1; b = float(u[0, 1] * u[1, 1])",
     lambda a, b: (a, (b * a - mp.mpf(0.1)) * (mp.mpf(0.5) * a))),
    ("fancy", "u = np.array([a, b, a * b]); u = u[[2, 0, 0]]; u[[0, 1]] += u[2]; a = float(u[0] * u[1])",
     lambda a, b: ((a * b + a) * (2 * a), b)),
    ("where", "u = np.array([a, b]); a = float(np.where(u > 0, u * u, -u).sum())",
     lambda a, b: (sum(x * x if x > 0 else -x for x in (a, b)), b)),
    ("solve", "u = np.linalg.solve(M + np.eye(3) * (2.0 + a * a), np.array([a, b, 1.0])); a = float(u[0])",
     lambda a, b: (mp.lu_solve(mp.matrix([[mp.mpf(float(M[i, j])) + (2 + a * a if i == j else 0)
                                           for j in range(3)] for i in range(3)]), mp.matrix([a, b, 1]))[0], b)),
    ("rrule", "a = twisted(a, b)", lambda a, b: (a * b + mp.sin(a), b)),
    ("frule", "a = bent(b, a)", lambda a, b: (b * a * a, b)),
    ("derived rule", "a = rolled_too(a, b)", lambda a, b: (a * b + mp.tanh(a), b)),
    ("captured pullback", "a = rolled_again(b, a)", lambda a, b: (a * b + mp.tanh(b), b)),
    ("rule by vjp", "a = rolled_by_vjp(a, b)", lambda a, b: (a * b + mp.tanh(a), b)),
    ("rule of a dict", "d = packed(a, b); a = d['sum'] * d['product']", lambda a, b: ((a + b) * a * b, b)),
    ("if", "if a > b:\n    a = a * b\nelse:\n    a, b = b - a, a * 0.5",
     lambda a, b: (a * b, b) if a > b else (b - a, a / 2)),
    ("max", "a = max(a, b * b, -1.0)", lambda a, b: (max(a, b * b, mp.mpf(-1)), b)),
    ("loop", "for k in range(3):\n    a = a + 0.1 * math.sin(a) * b",
     lambda a, b: _loop(a, b)),
    ("while", "k = 0\nwhile k < 3 and a < 50.0:\n    b = b * 0.5 + a * a * 0.1; k += 1", lambda a, b: (a, _while(a, b))),
    ("try", "try:\n    a = a * b\n    raise ValueError(a)\nexcept ValueError as e:\n    a = e.args[0] + b",
     lambda a, b: (a * b + b, b)),
    ("closure", "g = lambda t: t * a + b\na = g(b) * g(0.5)", lambda a, b: ((b * a + b) * (a / 2 + b), b)),
    ("inner grad", "a = grad(lambda t: t * t * b + math.sin(t) * a)(a)",
     lambda a, b: (2 * a * b + mp.cos(a) * a, b)),
    ("inner derivative", "a = derivative(lambda t: [t, b][0] ** 3 * a)(b)", lambda a, b: (3 * b * b * a, b)),
    ("inner jvp", "a, b = jvp(lambda s, t: s * s * t, (a, b), (b, 1.0))",
     lambda a, b: (a * a * b, 2 * a * b * b + a * a)),
    ("checkpoint", "a = checkpoint(lambda s, t: math.sin(s) * t + s, a, b)", lambda a, b: (mp.sin(a) * b + a, b)),
    ("sequence", "a, b = checkpoint_sequence(lambda s: (s[0] * 0.9 + s[1] * 0.1, s[1] - 0.1 * s[0] * s[1]), (a, b), 5, 2)",
     lambda a, b: _sequence(a, b)),
    ("forwarddiff", "a = forwarddiff(lambda s: math.cos(s) * b + s * s, a)", lambda a, b: (mp.cos(a) * b + a * a, b)),
    ("hook", "a = hook(lambda bar: bar, a) * b", lambda a, b: (a * b, b)),
    ("kept", "p = vjp(lambda t: t * t * b, a)[1]\na = p(b)[0] + a", lambda a, b: (2 * a * b * b + a, b)),
    ("kept map", "p = linearize(lambda t: [t, t * b], a)[1]\na, b = p(b)", lambda a, b: (b, b * b)),
    ("sorted", "c = sorted([a, b, 0.4]); a = c[0] * c[2] + c[1]",
     lambda a, b: (lambda c: (c[0] * c[2] + c[1], b))(sorted([a, b, mp.mpf(0.4)]))),
    ("unpack", "(a, b), *rest = [(b, a * 1.1), a, b]; a = a + rest[0] * rest[1]",
     lambda a, b: (b + a * b, mp.mpf(1.1) * a)),
    ("complex", "z = complex(a, b); z = z * z + 1.0; a = z.real + abs(z)",
     lambda a, b: (lambda z: (z.real + abs(z), b))(mp.mpc(a, b) ** 2 + 1)),
]


def _loop(a, b):
    for _ in range(3):
        a = a + mp.mpf(0.1) * mp.sin(a) * b
    return a, b


def _while(a, b):
    k = 0
    while k < 3 and a < 50:
        b = b * mp.mpf(0.5) + a * a * mp.mpf(0.1)
        k += 1
    return b


def _sequence(a, b):
    for _ in range(5):
        a, b = a * mp.mpf(0.9) + b * mp.mpf(0.1), b - mp.mpf(0.1) * a * b
    return a, b


@dataclass
class Program:
    """A function of one number, and what it means."""

    source: str
    f: Callable[[float], float]
    meaning: Callable[[Any], Any]


_numbers = itertools.count(1)


def program(names: list[str] | None = None, rng: random.Random | None = None) -> Program:
    """The program of these steps, or of one to four random ones."""
    by_name = {name: (source, meaning) for name, source, meaning in STEPS}
    if names is None:
        assert rng is not None
        names = [rng.choice(STEPS)[0] for _ in range(rng.choice((1, 1, 2, 2, 3, 4)))]
    lines = ["def f(x):", "    a, b = x, 0.7 * x + 0.2"]
    for name in names:
        lines += ["    " + line for line in by_name[name][0].splitlines()]
    lines.append("    return a * 1.0 + 0.5 * b")
    source = "\n".join(lines)
    filename = f"<program {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    space = {**globals(), **{name: getattr(pg, name) for name in pg.__all__}}
    exec(compile(source, filename, "exec"), space)

    def meaning(x):
        a, b = x, mp.mpf(0.7) * x + mp.mpf(0.2)
        for name in names:
            a, b = by_name[name][1](a, b)
        return a + b / 2

    return Program(source, space["f"], meaning)


# -- operators: (name, by how many derivatives, what becomes of f) --------------------------------------------------------

F = Callable[[float], float]


def number(y):
    return y if isinstance(y, float) else float(y)


def by_forward_rule(f):
    return lambda x: pg.build_frule(f)(pg.Dual(f, pg.NoTangent), pg.Dual(x, 1.0)).tangent


def under(mode):
    """A pullback, or map, made by `make` and used inside a derivative of this mode."""
    return {"forward": pg.derivative, "reverse": pg.grad}[mode]


def made_outside(make, outer, times):
    """The map of f at x is made first, then used inside another derivative, on what that differentiates."""

    def made(f):
        def of(x):
            pull = make(f, x)
            return outer(lambda t: pull(t * t) + x * t)(0.5) - x  # 2 t f'(x) + x - x at t = 1/2

        return of

    return made


def kept_from_inside(make, inner):
    """The map is made inside another derivative, at its own variable, and used after that has ended."""

    def made(f):
        def of(x):
            box = []

            def g(t):
                box.append(make(f, t))
                return t * t

            inner(g)(x)
            return box[-1](1.0)

        return of

    return made


def used_at_both(make, outer):
    """The map is made at x, and its argument and x both move."""

    def made(f):
        def of(x):
            pull = make(f, x)
            return outer(lambda t: pull(t) * x)(x) / x if x else pull(1.0)

        return of

    return made


MAPS = {
    "vjp": lambda f, x: (lambda p: lambda t: p(t)[0])(pg.vjp(f, x)[1]),
    "linearize": lambda f, x: pg.linearize(f, x)[1],
    "build_rrule": lambda f, x: (lambda p: lambda t: p(t)[1])(pg.build_rrule(f)(x)[1]),
    "rrule": lambda f, x: (lambda p: lambda t: pg.unthunk(p(t)[1]))(pg.rrule(f, x)[1]),
    "jvp": lambda f, x: lambda t: pg.jvp(f, (x,), (t,))[1],
    "vjp of a list": lambda f, x: (lambda p: lambda t: p([t])[0][0])(pg.vjp(lambda xs: [f(xs[0])], [x])[1]),
    "vjp of an array": lambda f, x: (lambda p: lambda t: number(p(np.array([t]))[0][0]))(
        pg.vjp(lambda xs: np.array([f(xs[0])]), np.array([x]))[1]
    ),
    "map of an array": lambda f, x: (lambda p: lambda t: number(p(np.array([t]))[0]))(
        pg.linearize(lambda xs: np.array([f(xs[0])]), np.array([x]))[1]
    ),
    "twice transposed": lambda f, x: (lambda p: lambda t: p((t,))[0])(
        pg.vjp(pg.vjp(f, x)[1], 0.5)[1]
    ),
    "map of a map": lambda f, x: pg.linearize(pg.linearize(f, x)[1], 0.25)[1],
}


def as_sequence(f):
    return lambda x: pg.checkpoint_sequence(lambda s: (s[0] + 0.5 * f(s[1]), s[1]), (0.0, x), 2, 1)[0]


OPERATORS: list[tuple[str, int, Callable[[F], F]]] = [
    ("grad", 1, lambda f: pg.grad(f)),
    ("derivative", 1, lambda f: pg.derivative(f)),
    ("jvp", 1, lambda f: lambda x: pg.jvp(f, (x,), (1.0,))[1]),
    ("jvp in steps", 1, lambda f: lambda x: pg.jvp(lambda s: f(s) * 2.0, (x,), (0.5,))[1]),
    ("value of jvp", 0, lambda f: lambda x: pg.jvp(f, (x,), (0.3,))[0]),
    ("value of vjp", 0, lambda f: lambda x: pg.vjp(f, x)[0]),
    ("value_and_grad", 1, lambda f: lambda x: pg.value_and_grad(f)(x)[1]),
    ("value of value_and_grad", 0, lambda f: lambda x: pg.value_and_grad(f)(x)[0]),
    ("jacobian forward", 1, lambda f: pg.jacobian(f, mode="forward")),
    ("jacobian reverse", 1, lambda f: pg.jacobian(f, mode="reverse")),
    ("jacobian of arrays", 1, lambda f: lambda x: number(
        pg.jacobian(lambda v: np.array([f(v[0]), v[1]]), mode="forward")(np.array([x, 0.5]))[0, 0])),
    ("rows of arrays", 1, lambda f: lambda x: number(
        pg.jacobian(lambda v: np.array([f(v[0]), v[1]]), mode="reverse")(np.array([x, 0.5]))[0, 0])),
    ("grad of a dict", 1, lambda f: lambda x: pg.grad(lambda d: f(d["k"]) * d["one"])({"k": x, "one": 1.0})["k"]),
    ("grad of an object", 1, lambda f: lambda x: pg.grad(lambda p: f(p.v) * p.w)(Box(x, 1.0)).v),
    ("grad of an array", 1, lambda f: lambda x: number(pg.grad(lambda v: f(v[1]) * v[0])(np.array([1.0, x]))[1])),
    ("grad that changes its argument", 1, lambda f: lambda x: pg.grad(
        lambda d: f(d.pop("k") * 2.0) * 0.5)({"k": x * 0.5})["k"]),
    ("hvp", 2, lambda f: lambda x: pg.hvp(f, (x,), (1.0,))[0]),
    ("vhp", 2, lambda f: lambda x: pg.vhp(f, (x,), (1.0,))[0]),
    ("hvp of a dict", 2, lambda f: lambda x: pg.hvp(
        lambda d: f(d.pop("k")), ({"k": x},), ({"k": 1.0},))[0]["k"]),
    ("hessian", 2, lambda f: pg.hessian(f)),
    ("derivative 2", 2, lambda f: pg.derivative(f, order=2)),
    ("taylor 1", 1, lambda f: lambda x: number(pg.taylor(f, x, 1)[1])),
    ("taylor 2", 2, lambda f: lambda x: number(pg.taylor(f, x, 3)[2]) * 2.0),
    ("map of grad", 2, lambda f: lambda x: pg.linearize(pg.grad(f), x)[1](1.0)),
    ("build_frule", 1, by_forward_rule),
    ("checkpoint", 0, lambda f: lambda x: pg.checkpoint(f, x)),
    ("checkpoint_sequence", 0, as_sequence),
    ("forwarddiff", 0, lambda f: lambda x: pg.forwarddiff(f, x)),
    ("prefer forward", 0, lambda f: pg.prefer_mode("forward")(lambda x: f(x))),
    ("hook", 0, lambda f: lambda x: pg.hook(lambda bar: bar, f(x))),
    ("wirtinger", 1, lambda f: lambda x: (lambda w: w[0] + w[1])(
        pg.wirtinger(lambda z: f(z.real))(complex(x, 0.25))).real),
    *[(f"map by {name}", 1, lambda f, make=make: lambda x: make(f, x)(1.0)) for name, make in MAPS.items()],
    *[(f"{name} used inside {mode}", 1, made_outside(make, outer, 1))
      for name, make in MAPS.items() for mode, outer in (("forward", pg.derivative), ("reverse", pg.grad))],
    *[(f"{name} made inside {mode}", 1, kept_from_inside(make, inner))
      for name, make in MAPS.items() for mode, inner in (("forward", pg.derivative), ("reverse", pg.grad))],
    *[(f"{name} at both, {mode}", 1, used_at_both(make, outer))
      for name, make in MAPS.items() for mode, outer in (("forward", pg.derivative), ("reverse", pg.grad))],
]
BY_NAME = {name: (order, make) for name, order, make in OPERATORS}


def composed(names: list[str], f: F) -> tuple[int, F]:
    """(the order, the composition); the last name is the outermost."""
    order = 0
    for name in names:
        more, make = BY_NAME[name]
        order += more
        f = make(f)
    return order, f


def random_operators(rng: random.Random) -> list[str]:
    """One to four operators with at most four derivatives among them."""
    while True:
        names = [rng.choice(OPERATORS)[0] for _ in range(rng.choice((1, 2, 2, 2, 3, 3, 4)))]
        if 1 <= sum(BY_NAME[name][0] for name in names) <= 4:
            return names


def is_close(found: Any, truth: Any, scale: Any) -> bool:
    """Whether a result is right to rounding, which is that of the largest derivative on the way."""
    return isinstance(found, (float, np.floating)) and abs(found - truth) <= RELATIVE * (abs(truth) + scale)


def one(seed: int, names: list[str] | None = None, steps: list[str] | None = None) -> tuple[str, str]:
    """(what came of one random case, its description)."""
    rng = random.Random(seed)
    p = program(steps, rng)
    operators = names or random_operators(rng)
    x = round(rng.uniform(0.3, 1.1), 3)
    text = f"--seed {seed} --only\n{p.source}\n  x = {x}, operators (inner first): {operators}"
    order, g = composed(operators, p.f)
    try:
        towers = [p.meaning(mp.mpf(x)), *[mp.diff(p.meaning, mp.mpf(x), k) for k in range(1, order + 1)]]
    except (ValueError, ZeroDivisionError, OverflowError, TypeError) as error:
        return "no truth", f"{text}\n  {error!r}"
    towers = [t.real if isinstance(t, mp.mpc) else t for t in towers]
    truth, scale = float(towers[-1]), float(max(map(abs, towers)))
    if not scale < 1e8:
        return "too large", text
    try:
        found = g(x)
    except pg.PlaingradError as error:
        return "refused", f"{text}\n  {type(error).__name__}: {error}"
    except OverflowError:
        return "too large", text
    except Exception:
        return "crash", f"{text}\n{traceback.format_exc()}"
    if is_close(found, truth, scale):
        return "right", text
    return "WRONG", f"{text}\n  found {found!r}, truth {truth!r}, scale {scale:.3g}"


def main() -> int:
    """Run, and say what came of it; 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="store_true", help="the one case with this very seed")
    parser.add_argument("--refusals", action="store_true", help="show the refusals, too")
    parser.add_argument("--matrix", action="store_true", help="every operator and pair of operators, on every step")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tally: collections.Counter[str] = collections.Counter()
    if options.only:
        cases: Any = [(options.seed, None, None)]
    elif options.matrix:
        cases = (
            (options.seed, list(names), [step])
            for step, *_ in STEPS
            for names in [*((a,) for a in BY_NAME), *itertools.product(BY_NAME, ("grad", "derivative"))]
            if sum(BY_NAME[name][0] for name in names) >= 1
        )
    else:
        cases = ((options.seed * 1_000_000 + k, None, None) for k in range(options.count))
    for seed, names, steps in cases:
        outcome, text = one(seed, names, steps)
        tally[outcome] += 1
        if outcome in ("WRONG", "crash") or options.only or (options.refusals and outcome == "refused"):
            print(f"{outcome}: {text}\n", flush=True)
    print(dict(tally))
    return 1 if tally["WRONG"] or tally["crash"] else 0


if __name__ == "__main__":
    sys.exit(main())
