"""Loops that compute arrays from neighbours: gathered on the way back, or left alone, and right in either case."""

import functools
import itertools
import linecache
import random
from dataclasses import replace

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from plaingrad.native.compile import build  # noqa: E402
from plaingrad.native.loops import forms, stencils  # noqa: E402
from plaingrad.native.reverse.reverse import pullback_sweeps  # noqa: E402
from tests.sampling import some  # noqa: E402

_numbers = itertools.count()


@pytest.fixture
def taken(monkeypatch):
    """The loops that were differentiated as stencils."""
    found = []

    def form(rt, s):
        parts = stencils.gathered(rt, s)
        if parts is not None:
            found.append(s)
        return parts

    loops = [replace(f, parts=form) if f.parts is stencils.gathered else f for f in forms.FORMS.loops]
    assert loops != list(forms.FORMS.loops)
    watched = replace(forms.FORMS, loops=tuple(loops))
    monkeypatch.setitem(build.TRANSFORMS, "pullback", functools.partial(pullback_sweeps, forms=watched))
    return found


def function(text):
    """The function `f` that `text` defines."""
    name = f"<stencil {next(_numbers)}>"
    space = {"np": np}
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), space)
    return space["f"]


def copied(args):
    """Arguments that a function may write into."""
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)


def native(f, args, argnums, compiled=False):
    """(value, gradients), by the derived program, uncompiled unless asked for."""
    args = copied(args)
    if compiled:
        return plaingrad.value_and_grad(f, argnums, tier="native")(*args)
    found = build.derived("pullback", f, tuple(numba.typeof(a) for a in args), argnums)
    shadows = [np.zeros_like(args[k]) for k in argnums if isinstance(args[k], np.ndarray)]
    out = list(found.python(*args, 1.0, *shadows))
    value, bars = out.pop(0), out
    return value, tuple(shadows.pop(0) if isinstance(args[k], np.ndarray) else bars.pop(0) for k in argnums)


def agree(f, args, argnums=(0,), compiled=False):
    """The native gradient is the plain tier's."""
    value, found = native(f, args, argnums, compiled)
    expected_value, expected = plaingrad.value_and_grad(f, argnums, tier="plain")(*copied(args))
    np.testing.assert_allclose(value, expected_value, rtol=1e-12)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-12)


def slopes(f, args, k):
    """The gradient with respect to array argument `k` by central differences."""
    found = np.zeros_like(args[k])
    for place in np.ndindex(found.shape):
        low, high = args[k].copy(), args[k].copy()
        low[place] -= 1e-6
        high[place] += 1e-6
        found[place] = (f(*args[:k], high, *args[k + 1 :]) - f(*args[:k], low, *args[k + 1 :])) / 2e-6
    return found


def heat(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = u[i, j] + c * (
                    u[i, j - 1] + u[i, j + 1] + u[i - 1, j] + u[i + 1, j] - 4.0 * u[i, j]
                )
        u = v
    total = 0.0
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            total += u[i, j] * u[i, j]
    return 0.5 * total


def test_the_heat_equation_is_the_transposed_matrix_whatever_the_size_of_the_grid(taken):
    for rows, columns, steps in itertools.product((0, 2, 3, 4, 5, 7), (2, 5, 6), (0, 2)):
        u0 = np.random.default_rng(rows).random((rows, columns))
        step = np.eye(u0.size).reshape(rows, columns, rows, columns)
        for i, j in itertools.product(range(1, rows - 1), range(1, columns - 1)):
            step[i, j, i, j] -= 4 * 0.2
            for a, b in ((0, 1), (0, -1), (1, 0), (-1, 0)):
                step[i, j, i + a, j + b] += 0.2
        whole = np.linalg.matrix_power(step.reshape(u0.size, u0.size), steps) if u0.size else np.zeros((0, 0))
        _, (found,) = native(heat, (u0, 0.2, steps), (0,))
        np.testing.assert_allclose(found.ravel(), whole.T @ whole @ u0.ravel(), rtol=1e-12, atol=1e-14)
    assert taken


def test_the_compiled_heat_equation_has_the_slopes_of_finite_differences(taken):
    u0 = np.random.default_rng(0).random((7, 9))
    _, (found, slope) = native(heat, (u0, 0.2, 5), (0, 1), compiled=True)
    np.testing.assert_allclose(found, slopes(heat, (u0, 0.2, 5), 0), rtol=1e-7, atol=1e-8)
    by_difference = (heat(u0, 0.2 + 1e-6, 5) - heat(u0, 0.2 - 1e-6, 5)) / 2e-6
    np.testing.assert_allclose(slope, by_difference, rtol=1e-7)
    assert taken


def test_a_loop_over_time_needs_two_buffers_and_keeps_no_array():
    text = build.derived("pullback", heat, (numba.float64[:, ::1], numba.float64, numba.int64), (0,)).text
    assert "keep_array" not in text and "zeros_like" not in text


# Random stencils ------------------------------------------------------------------------------------------------------

NAMES = "ijk"


class Random:
    """A program of random stencils."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        r = self.random
        self.rank = r.choice((1, 1, 2, 2, 3))
        self.lines = []
        self.starts = [r.randint(0, 2) for _ in range(self.rank)]
        self.ends = [r.randint(0, 2) for _ in range(self.rank)]
        self.wraps = r.random() < 0.2  # an index may be negative, which counts from the end

    def offset(self):
        r = self.random
        lows = [-2 if self.wraps else -s for s in self.starts]
        return [r.randint(max(low, -2), e) for low, e in zip(lows, self.ends, strict=True)]

    def element(self, name):
        parts = []
        for i, c in zip(NAMES, self.offset(), strict=False):
            parts.append(i if c == 0 else f"{i} {'+' if c > 0 else '-'} {abs(c)}")
        return f"{name}[{', '.join(parts)}]"

    def term(self, fields):
        r = self.random
        x, y = self.element(r.choice(fields)), self.element(r.choice(fields))
        return r.choice(
            (x, x, f"c * {x}", f"-{x}", f"{x} * {y}", f"np.sin({x})", f"{x} / (2.0 + {y} * {y})")
            + (
                f"{self.element('a')} * {x}",
                f"c * {x} * (1.0 - {x})",
                f"a[{self.fixed()}] * {x}",
                f"abs({x})",
            )
        )

    def fixed(self):
        """An index that is not one of the loop's: then it is added to as it stands."""
        return ", ".join(self.random.choice((i, "0", f"{i} // 2")) for i in NAMES[: self.rank])

    def nest(self, stores, tabs):
        r = self.random
        for k in range(self.rank):
            n = f"u.shape[{k}]"
            stop = f"{n} - {self.ends[k]}" if self.ends[k] else n
            start = f"s{k}" if r.random() < 0.3 else str(self.starts[k])
            self.lines.append(f"{'    ' * tabs}for {NAMES[k]} in range({start}, {stop}):")
            tabs += 1
        self.lines += [f"{'    ' * tabs}{store}" for store in stores]

    def text(self):
        r = self.random
        two = r.random() < 0.4
        fields = ["u", "w"] if two else ["u"]
        style = r.choice(("new", "new", "new", "exchanged", "exchanged", "back", "in place"))
        self.lines = ["def f(u0, a, c, steps):", "    u = u0.copy()"]
        if two:
            self.lines.append("    w = u0 * 0.5")
        for k, start in enumerate(self.starts):
            self.lines.append(f"    s{k} = min({start}, steps + 7)")
        makes = []
        for name in fields:
            kinds = (
                f"{name}.copy()",
                f"{name}.copy()",
                f"np.zeros_like({name})",
                "np.zeros(u.shape)",
                "u0.copy()",
            )
            makes.append(f"new_{name} = {name if style == 'in place' else r.choice(kinds)}")
        if style in ("exchanged", "back"):
            self.lines += [f"    {made}" for made in makes]
        self.lines.append("    for _ in range(steps):")
        if style in ("new", "in place"):
            self.lines += [f"        {made}" for made in makes]
        stores = []
        for name in fields:
            terms = [self.term(fields) for _ in range(r.randint(1, 4))]
            target = self.stored(name)
            if r.random() < 0.3:
                terms.append(r.choice((f"c * {target}", f"{target} * {target}")))
            stores.append(f"{target} = {' + '.join(terms)}")
        self.nest(stores, 2)
        if r.random() < 0.3:
            self.lines.append("        if new_u.size > 0:")
            self.lines.append(f"            new_u[{', '.join(['0'] * self.rank)}] = c * c")
        if style == "back":
            self.nest([f"{name}[{', '.join(NAMES[: self.rank])}] = new_{name}[{', '.join(NAMES[: self.rank])}]"
                       for name in fields], 2)  # fmt: skip
        elif style == "exchanged":
            self.lines += [f"        {name}, new_{name} = new_{name}, {name}" for name in fields]
        elif r.random() < 0.3:
            self.lines += ["        q = u", "        u = new_u * 0.5 + q"]
        else:
            self.lines.append("        u = new_u")
        if two and style in ("new", "in place"):
            self.lines.append("        w = new_w")
        self.lines.append(f"    return np.sum(u * u) + np.sum(u * a){' + np.sum(w * a * a)' if two else ''}")
        return "\n".join(self.lines) + "\n"

    def stored(self, name):
        """The element that is stored to: within the bounds as an offset."""
        shifts = [self.random.randint(-s, e) if self.random.random() < 0.2 else 0
                  for s, e in zip(self.starts, self.ends, strict=True)]  # fmt: skip
        parts = [
            i if c == 0 else f"{i} {'+' if c > 0 else '-'} {abs(c)}"
            for i, c in zip(NAMES, shifts, strict=False)
        ]
        return f"new_{name}[{', '.join(parts)}]"


def sizes(r, rank, least):
    """A random shape."""
    return tuple(r.randint(least, 7 if rank < 3 else 5) for _ in range(rank))


def check(seed, compiled=False):
    """Native and plain agree on the program number `seed`."""
    made = Random(seed)
    f = function(made.text())
    for n in range(2):
        r = random.Random(1000 * seed + n)
        shape = sizes(r, made.rank, 4 if made.wraps else 1)
        values = np.random.default_rng(seed + n)
        args = values.normal(size=shape), values.normal(size=shape), 0.3, r.randint(0, 2)
        agree(f, args, (0, 1, 2), compiled)


@pytest.mark.parametrize("seed", range(24))
def test_random_stencils_have_the_plain_tiers_gradient(seed):
    check(seed)


@pytest.mark.parametrize("seed", some([0], [4]))
def test_random_stencils_compiled_have_the_plain_tiers_gradient(seed):
    check(seed, compiled=True)


# Forms of programs ----------------------------------------------------------------------------------------------------

GATHERED = {
    "buffers that change names": """
def f(u0, c, steps):
    u = u0.copy()
    v = u0.copy()
    for _ in range(steps):
        for i in range(1, u.size - 1):
            v[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1]) * u[i]
        u, v = v, u
    return np.sum(u * u)
""",
    "a wave with two earlier states": """
def f(u0, c, steps):
    u = u0.copy()
    p = u0 * 0.9
    for _ in range(steps):
        w = np.zeros_like(u)
        for i in range(1, u.size - 1):
            w[i] = 2 * u[i] - p[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1])
        p = u
        u = w
    return np.sum(u * u * p)
""",
    "a step that is copied back": """
def f(u, c, steps):
    v = np.empty_like(u)
    for _ in range(steps):
        for i in range(1, u.size - 1):
            v[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1]) * u[i]
        for i in range(1, u.size - 1):
            u[i] = v[i]
    return np.sum(u * u)
""",
    "a boundary condition behind the step": """
def f(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        v = np.empty_like(u)
        for i in range(1, u.size - 1):
            v[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1])
        v[0] = u[0] * c
        v[-1] = 2.0
        u = v
    return np.sum(u * u)
""",
    "a branch between two schemes": """
def f(u0, c, steps):
    u = u0.copy()
    for k in range(steps):
        v = u.copy()
        if k % 2 == 0:
            for i in range(1, u.size - 1):
                v[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1])
            u = v
        else:
            for i in range(2, u.size):
                v[i] = u[i] - c * (u[i] - u[i - 2])
            u = v
    return np.sum(u * u)
""",
    "a sum over several runs": """
def f(u0, c, steps):
    total = 0.0
    for k in range(steps):
        v = np.zeros_like(u0)
        for i in range(1, u0.size - 1):
            v[i] = c * k * (u0[i - 1] + u0[i + 1])
        for i in range(u0.size):
            total += v[i] * v[i]
    return total
""",
}
IN_PLACE = {
    "elements changed in place": """
def f(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        for i in range(u.size):
            u[i] = u[i] * u[i] * c + u0[i]
    return np.sum(u * u)
""",
    "two fields, each from the other as it was or as it is": """
def f(x0, c, steps):
    x = x0.copy()
    v = x0 * 0.5
    for _ in range(steps):
        for i in range(1, x.size):
            v[i] -= c * x[i] * x[i]
            x[i] += c * v[i]
    return np.sum(x * v)
""",
    "two fields, each from the other as it was": """
def f(x0, c, steps):
    x = x0.copy()
    v = x0 * 0.5
    for _ in range(steps):
        for i in range(1, x.size):
            a, b = x[i], v[i]
            v[i] = b - c * a * a
            x[i] = a + c * b * a
    return np.sum(x * v)
""",
    "a field changed in place by differences of another": """
def f(p0, c, steps):
    p = p0.copy()
    v = np.zeros_like(p0)
    for _ in range(steps):
        for i in range(1, p.size):
            v[i] = v[i] - c * (p[i] - p[i - 1]) * v[i]  + p[i]
        for i in range(0, p.size - 1):
            p[i] = p[i] - c * (v[i + 1] - v[i])
    return np.sum(p * p)
""",
    "an argument changed in place": """
def f(u, c, steps):
    for _ in range(steps):
        for i in range(u.shape[0]):
            u[i] *= c
    return np.sum(u * u)
""",
    "an array filled by adding": """
def f(u, c, steps):
    v = np.zeros_like(u)
    for i in range(u.size):
        v[i] += c * u[i] * u[i]
    return np.sum(v * v)
""",
}
LEFT_ALONE = {
    "Gauss-Seidel": """
def f(u, c, steps):
    for _ in range(steps):
        for i in range(1, u.size - 1):
            u[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1])
    return np.sum(u * u)
""",
    "Gauss-Seidel by another name": """
def f(u, c, steps):
    for _ in range(steps):
        v = u
        for i in range(1, u.size - 1):
            v[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1])
    return np.sum(u * u)
""",
    "buffers that are one": """
def f(u0, c, steps):
    u = u0.copy()
    v = u
    for _ in range(steps):
        for i in range(1, u.size - 1):
            v[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1]) * u[i]
        u, v = v, u
    return np.sum(u * u)
""",
    "buffers that become one": """
def f(u0, c, steps):
    u = u0.copy()
    v = u0.copy()
    for k in range(steps):
        for i in range(1, u.size - 1):
            v[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1]) * u[i]
        u = v
    return np.sum(u * u)
""",
    "overlapping views": """
def f(u, c, steps):
    a = u[1:]
    b = u[:-1]
    for _ in range(steps):
        for i in range(a.size):
            b[i] = c * a[i]
    return np.sum(u * u)
""",
    "a recurrence": """
def f(u, c, steps):
    v = np.zeros_like(u)
    s = 0.0
    for i in range(1, u.size):
        s = s * c + u[i - 1]
        v[i] = s
    return np.sum(v * v)
""",
    "indices that count from the end": """
def f(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(u.size):
            v[i] = u[i] + c * (u[i - 1] - u[i])
        u = v
    return np.sum(u * u)
""",
    "an element read as it was before and as another iteration leaves it": """
def f(u0, c, steps):
    u = u0.copy()
    for i in range(1, u.size):
        x = u[i] * c
        u[i] = x + u[i - 1]
    return np.sum(u * u)
""",
    "in place by indices that count from the end": """
def f(u0, c, steps):
    u = u0.copy()
    for i in range(u.size):
        u[i - 1] = u[i - 1] * u[i - 1] * c
    return np.sum(u * u)
""",
    "elements stored twice": """
def f(u0, c, steps):
    v = np.zeros_like(u0)
    for i in range(1, u0.size - 1):
        v[i] = c * u0[i - 1]
        v[i + 1] = c * c * u0[i]
    return np.sum(v * v)
""",
    "a value used behind the loop": """
def f(u0, c, steps):
    v = np.zeros_like(u0)
    x = c
    for i in range(1, u0.size):
        x = c * u0[i - 1]
        v[i] = x * x
    return np.sum(v * v) + x
""",
    "a loop that goes down": """
def f(u0, c, steps):
    v = np.zeros_like(u0)
    for i in range(u0.size - 1, 0, -1):
        v[i] = c * u0[i - 1] * u0[i]
    return np.sum(v * v)
""",
}


@pytest.mark.parametrize("text", [*GATHERED.values(), *IN_PLACE.values()], ids=[*GATHERED, *IN_PLACE])
def test_gathered_are(text, taken):
    f = function(text)
    for n, steps in ((1, 1), (3, 2), (5, 0), (5, 2), (6, 3), (9, 1)):
        agree(f, (np.random.default_rng(n).random(n), 0.2, steps), (0, 1))
    assert taken


@pytest.mark.parametrize("text", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_left_alone_are(text, taken):
    f = function(text)
    for n, steps in ((1, 1), (3, 2), (5, 0), (5, 2), (6, 3), (9, 1)):
        agree(f, (np.random.default_rng(n).random(n), 0.2, steps), (0, 1))
    assert not taken


def test_a_start_that_is_negative_at_run_time_counts_from_the_end(taken):
    f = function("""
def f(u0, c, start):
    v = u0.copy()
    for i in range(start, u0.size - 1):
        v[i] = u0[i] + c * (u0[i - 1] - 2 * u0[i] + u0[i + 1])
    return np.sum(v * v * v)
""")
    for start in (-3, -1, 0, 1, 2):
        agree(f, (np.random.default_rng(0).random(9), 0.2, start), (0, 1))
    assert taken


def test_what_is_stored_in_front_of_an_inner_loop_keeps_its_derivative():
    def f(u, c):
        v, a = np.zeros_like(u), np.zeros(u.shape[0])
        for i in range(1, 5):
            a[i] = c
            for j in range(1, 5):
                v[i, j] = u[i - 1, j] + 2.0 * u[i, j - 1]
        return np.sum(v) + np.sum(a)

    u = np.random.default_rng(0).random((6, 6))
    _, (u_bar, c_bar) = native(f, (u, 0.5), (0, 1))
    wanted = np.zeros_like(u)
    wanted[0:4, 1:5] += 1.0
    wanted[1:5, 0:4] += 2.0
    np.testing.assert_array_equal(u_bar, wanted)
    assert c_bar == 4.0


def test_infinite_slopes_stay_where_they_are():
    f = function("""
def f(u0, c):
    v = np.zeros_like(u0)
    for i in range(1, u0.size - 1):
        v[i] = np.sqrt(u0[i - 1]) + c * u0[i + 1]
    return np.sum(v)
""")
    u0 = np.array([4.0, 0.0, 1.0, 9.0, 16.0, 25.0, 0.0, 1.0])
    _, (found,) = native(f, (u0, 0.5), (0,))
    np.testing.assert_array_equal(
        found, [0.25, np.inf, 0.5 + 0.5, 1 / 6 + 0.5, 0.125 + 0.5, 0.1 + 0.5, 0.5, 0.5]
    )


def test_the_caller_who_asks_twice_gets_the_same():
    f = numba.njit(function(GATHERED["buffers that change names"]))
    u0 = np.random.default_rng(0).random(9)
    first = plaingrad.grad(f, (0, 1))(u0, 0.2, 3)
    second = plaingrad.grad(f, (0, 1))(u0, 0.2, 3)
    np.testing.assert_array_equal(first[0], second[0])
    assert first[1] == second[1]


def test_a_result_does_not_lie_in_memory_that_is_used_again():
    f = numba.njit(
        function("""
def f(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.size - 1):
            v[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1]) * u[i]
        u = v
    return u
""")
    )
    u0, u1 = np.random.default_rng(0).random((2, 9))
    y, pullback = plaingrad.vjp(f, u0, 0.2, 3)
    expected, kept = f(u0, 0.2, 3), pullback(np.ones(9))[0].copy()
    other, _ = plaingrad.vjp(f, u1, 0.2, 3)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(other, f(u1, 0.2, 3))
    np.testing.assert_array_equal(pullback(np.ones(9))[0], kept)


# Zeros ----------------------------------------------------------------------------------------------------------------

REACTION = """
def f(u0, c, k, steps):
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.size - 1):
            v[i] = u[i] + c * (u[i - 1] - 2 * u[i] + u[i + 1]) + k * u[i] * (1.0 - u[i])
        u = v
    return np.sum(u * u)
"""


def test_a_rate_that_is_zero_has_a_program_of_its_own_that_keeps_nothing():
    f = function(REACTION)
    u0 = np.random.default_rng(0).random(9)
    signature = tuple(numba.typeof(a) for a in (u0, 0.2, 0.0, 3))
    general = build.derived("pullback", f, signature, (0, 1))
    special = build.derived("pullback", f, signature, (0, 1), (2,))
    assert "keep(" in general.text and "keep(" not in build.derived("pullback", f, signature, (0,), (2,)).text
    one, other = np.zeros_like(u0), np.zeros_like(u0)
    first = general.python(u0, 0.2, 0.0, 3, 1.0, one)
    second = special.python(u0, 0.2, 0.0, 3, 1.0, other)
    np.testing.assert_allclose(first, second, rtol=1e-14)
    np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.optimised
def test_a_rate_that_is_zero_is_differentiated_where_that_is_asked_for():
    f = function(REACTION)
    args = np.random.default_rng(0).random(9), 0.2, 0.0, 2
    agree(f, args, (0, 2), compiled=True)


def test_zeros_come_and_go_from_call_to_call():
    f = function(REACTION)
    gradient = plaingrad.value_and_grad(f, 0, tier="native")
    u0 = np.random.default_rng(0).random(9)
    for c, k in ((0.2, 0.0), (0.2, 0.1), (0.0, 0.1), (0.0, 0.0), (0.2, -0.0)):
        value, found = gradient(u0, c, k, 2)
        expected_value, expected = plaingrad.value_and_grad(f, 0, tier="plain")(u0, c, k, 2)
        np.testing.assert_allclose(value, expected_value, rtol=1e-13)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.usefixtures("machine_code")
def test_the_value_of_a_program_for_zeros_is_the_functions_own():
    f = function(REACTION)
    u0 = np.array([1.0, np.inf, 2.0, np.nan, 1.0])
    value, _ = plaingrad.value_and_grad(f, 0, tier="native")(u0, 0.2, 0.0, 1)
    with np.errstate(invalid="ignore"):
        expected = f(u0, 0.2, 0.0, 1)
    np.testing.assert_equal(value, expected)


def test_a_function_that_calls_itself_with_another_rate_is_not_taken_for_the_one_with_zero():
    def power(x, k, n):
        if n == 0:
            return x * 1.0
        return power(x, k + 1.0, n - 1) * (x + k)

    power = numba.njit(power)
    expected = plaingrad.grad(power.py_func, tier="plain")(1.3, 0.0, 3)
    np.testing.assert_allclose(plaingrad.grad(power, tier="native")(1.3, 0.0, 3), expected, rtol=1e-13)


@pytest.mark.parametrize("rank", (1, 2, 3))
def test_a_copy_is_made_around_what_the_loop_fills_or_before_it_where_that_counts_from_the_end(rank, taken):
    loops = "\n".join(
        f"{'    ' * (k + 1)}for {i} in range(start, u0.shape[{k}] - 1):" for k, i in enumerate("ijk"[:rank])
    )
    place = ", ".join("ijk"[:rank])
    f = function(f"""
def f(u0, c, start):
    v = u0.copy()
{loops}
{"    " * (rank + 1)}v[{place}] = u0[{place}] * u0[{place}] + c
    return np.sum(v * v * v)
""")
    u0 = np.random.default_rng(0).random((5, 4, 6)[:rank])
    for start in (-3, -1, 0, 1, 2, 4, 9):
        for compiled in (False, True):
            agree(f, (u0, 0.2, start), (0, 1), compiled)
    assert taken
