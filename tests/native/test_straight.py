"""Branches, min and max inside of stencils: gathered where decisions can be taken again, and right in any case."""

import random

import numpy as np
import pytest


numba = pytest.importorskip("numba")

from tests.sampling import count, some  # noqa: E402
from tests.native.test_stencils import agree, function, native, slopes, taken  # noqa: E402, F401

GATHERED = {
    "upwind differences": """
def f(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.size - 1):
            if u[i] > 0.0:
                flux = u[i] * (u[i] - u[i - 1])
            else:
                flux = u[i] * (u[i + 1] - u[i])
            v[i] = u[i] - c * flux
        u = v
    return np.sum(u * u)
""",
    "a limiter": """
def f(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        v = np.zeros_like(u)
        for i in range(1, u.size - 1):
            a = u[i] - u[i - 1]
            b = u[i + 1] - u[i]
            s = 0.0
            if a * b > 0.0:
                s = a if abs(a) < abs(b) else b
            v[i] = u[i] + c * s
        u = v
    return np.sum(u * u * u)
""",
    "the largest and the least of three": """
def f(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.size - 1):
            v[i] = c * max(u[i - 1], u[i], u[i + 1]) + min(u[i], u[i + 1]) * u[i - 1]
        u = v
    return np.sum(u * u)
""",
    "a store in one arm only": """
def f(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.size - 1):
            if u[i] > 0.1 and u[i + 1] < u[i]:
                v[i] = c * u[i - 1] * u[i]
        u = v
    return np.sum(u * u)
""",
    "a store in one arm only, into zeros": """
def f(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        v = np.zeros_like(u)
        for i in range(1, u.size - 1):
            if u[i] > 0.1:
                v[i] = c * u[i - 1] * u[i]
            elif u[i + 1] > 0.0:
                v[i] = u[i + 1] - c
        u = v
    return np.sum(u * u)
""",
    "a store in both arms": """
def f(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        v = np.empty_like(u)
        v[0] = u[0]
        v[-1] = c
        for i in range(1, u.size - 1):
            if u[i] < 0.2:
                v[i] = u[i] * u[i]
            else:
                v[i] = u[i] * (u[i + 1] - c)
        u = v
    return np.sum(u * u)
""",
    "a branch on the place": """
def f(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        v = np.zeros_like(u)
        for i in range(u.size):
            left = c if i == 0 else u[i]
            right = 2.0 * u[i]
            if i < 3:
                right = right * c
            v[i] = left * right * c
        u = v
    return np.sum(u)
""",
    "branches in branches": """
def f(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.size - 1):
            x = u[i] * c
            if u[i] > 0.0:
                if u[i - 1] > u[i + 1]:
                    x = x + u[i - 1]
                    y = x * u[i]
                else:
                    y = u[i + 1]
                x = x * y
            elif u[i] < -0.5:
                x = -x
            v[i] = u[i] + c * x
        u = v
    return np.sum(u * u)
""",
    "elements changed in place where they are large": """
def f(u, c, steps):
    for _ in range(steps):
        for i in range(u.size):
            if u[i] > 0.3:
                u[i] = u[i] * c
    return np.sum(u * u)
""",
}
LEFT_ALONE = {
    "a decision that might be contracted": """
def f(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.size - 1):
            if u[i] * c + u[i - 1] > 0.1:
                v[i] = u[i] * u[i + 1]
        u = v
    return np.sum(u * u)
""",
    "a threshold that every step computes, and that might be contracted": """
def f(u0, c, steps):
    u = u0.copy()
    for k in range(steps):
        v = u.copy()
        threshold = c * k + 0.1 * c
        for i in range(1, u.size - 1):
            if u[i] > threshold:
                v[i] = u[i] * u[i + 1]
        u = v
    return np.sum(u * u)
""",
    "the larger of two sums of products": """
def f(u0, c, steps):
    v = np.zeros_like(u0)
    for i in range(1, u0.size - 1):
        v[i] = max(u0[i] * c + u0[i - 1], u0[i] - c * u0[i + 1])
    return np.sum(v * v)
""",
    "a function of a number that may not be for it": """
def f(u0, c, steps):
    v = np.zeros_like(u0)
    for i in range(1, u0.size - 1):
        if u0[i] > 0.0:
            v[i] = np.sqrt(u0[i]) / u0[i] + c * u0[i - 1]
    return np.sum(v * v)
""",
    "stores to different elements": """
def f(u0, c, steps):
    v = np.zeros_like(u0)
    for i in range(1, u0.size - 1):
        if u0[i] > 0.0:
            v[i] = c * u0[i - 1]
        else:
            v[i + 1] = c * u0[i + 1]
    return np.sum(v * v)
""",
    "a store that other iterations have no element for": """
def f(u0, c, steps):
    v = np.zeros(u0.size // 2)
    for i in range(u0.size):
        if i < v.size:
            v[i] = c * u0[i] * u0[i]
    return np.sum(v * v)
""",
}


OF_A_SUM = """
def f(u, c):
    v = np.zeros_like(u)
    for i in range(1, u.size - 1):
        if u[i] + u[i - 1] + u[i + 1] > 0.1:
            v[i] = u[i] * c
    return np.sum(v * v)
"""


def test_a_decision_on_a_sum_is_not_taken_again_under_flags_that_let_it_be_reordered(taken):  # noqa: F811
    f = function(OF_A_SUM)
    args = (np.random.default_rng(3).normal(size=9), 0.2)
    agree(f, args, (0, 1))
    assert taken
    taken.clear()
    agree(numba.njit(fastmath=True)(f), args, (0, 1))
    assert not taken
    agree(
        numba.njit(fastmath=True)(function(OF_A_SUM.replace("u[i] + u[i - 1] + u[i + 1]", "u[i]"))),
        args,
        (0, 1),
    )
    assert taken


@pytest.mark.parametrize("text", GATHERED.values(), ids=GATHERED)
def test_gathered_are(text, taken):  # noqa: F811
    f = function(text)
    for n, steps in ((1, 1), (3, 2), (5, 0), (5, 2), (6, 3), (9, 1), (17, 3)):
        agree(f, (np.random.default_rng(n).normal(size=n), 0.2, steps), (0, 1))
    assert taken


@pytest.mark.parametrize("text", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_left_alone_are(text, taken):  # noqa: F811
    f = function(text)
    for n, steps in ((1, 1), (3, 2), (5, 2), (9, 1)):
        agree(f, (np.random.default_rng(n).normal(size=n), 0.2, steps), (0, 1))
    assert not taken


BEHIND = """
            if i + 1 < n:
                x = x - u0[i + 1, j]
            if j + 2 < m:
                x = x * u0[i, j + 2]
"""
BEFORE = """
            if i > 0:
                x = x + u0[i - 1, j] * u0[i, j]
            if j > 0:
                x = x + u0[i, j - 1]
"""


@pytest.mark.parametrize("guards", (BEHIND, BEFORE + BEHIND), ids=("behind", "both"))
def test_elements_that_a_branch_guards_are_not_read_where_there_are_none(guards, taken):  # noqa: F811
    f = function(f"""
def f(u0, c, steps):
    v = np.zeros_like(u0)
    n, m = u0.shape
    for i in range(n):
        for j in range(m):
            x = u0[i, j] * c
{guards}
            v[i, j] = x
    return np.sum(v * v)
""")
    for shape in ((1, 1), (2, 3), (4, 5), (7, 9)):
        for compiled in (False, True):
            agree(f, (np.random.default_rng(0).normal(size=shape), 0.2, 1), (0, 1), compiled)
    assert bool(taken) == (guards == BEHIND)


@pytest.mark.usefixtures("machine_code")
def test_an_infinite_slope_stays_in_the_arm_that_is_not_taken():
    f = function("""
def f(u0, w, c):
    v = np.zeros_like(u0)
    for i in range(1, u0.size - 1):
        x = u0[i]
        if u0[i] < 1.0:
            x = u0[i - 1] * w[i] * w[i + 1]
        v[i] = x * c
    return np.sum(v)
""")
    u0, w = np.arange(8.0), np.full(8, np.inf)
    u0[4], w[4:6] = 0.5, 3.0
    _, (u_bar, w_bar) = native(f, (u0, w, 0.5), (0, 1), compiled=True)
    np.testing.assert_array_equal(u_bar, [0, 0.5, 0.5, 0.5 + 4.5, 0, 0.5, 0.5, 0])
    np.testing.assert_array_equal(w_bar, [0, 0, 0, 0, 4.5, 4.5, 0, 0])


@pytest.mark.optimised
def test_the_value_has_the_bits_of_the_users_function_and_the_gradient_its_differences():
    f = function("""
def f(u0, c, steps):
    u = u0.copy()
    for _ in range(steps):
        v = u.copy()
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                if u[i, j] > 0.0:
                    x = u[i, j] - u[i, j - 1]
                else:
                    x = u[i + 1, j] - u[i, j]
                y = max(min(x, 0.5), -0.5)
                if u[i - 1, j] < 0.8:
                    v[i, j] = u[i, j] - c * u[i, j] * y
        u = v
    return np.sum(u * u)
""")
    for kind, rtol in some([(np.float64, 1e-7)], [(np.float32, 1e-4)]):
        u0 = np.random.default_rng(0).normal(size=(7, 9)).astype(kind)
        value, (found,) = native(f, (u0, 0.1, 4), (0,), compiled=True)
        assert value == numba.njit(f)(u0, 0.1, 4)
        exact = u0.astype(float)
        np.testing.assert_allclose(found, slopes(f, (exact, 0.1, 4), 0), rtol=rtol, atol=rtol)


# Random programs ------------------------------------------------------------------------------------------------------


def program(seed):
    """The text of a random stencil with branches."""
    r = random.Random(seed)
    rank = r.choice((1, 1, 2))
    names = "ij"[:rank]

    def element(array="u"):
        return f"{array}[{', '.join(f'{i} + {r.randint(-1, 1)}' for i in names)}]"

    here = f"[{', '.join(names)}]"

    def simple():
        return r.choice((element(), element("a"), "c", "0.2", f"abs({element()})", "x"))

    def test():
        left, right = element(), r.choice((element(), "0.1", element("a"), f"{element()} - {element()}"))
        return f"{left} {r.choice(('<', '>', '<=', '>='))} {right}"

    def value():
        one, two = simple(), simple()
        return r.choice(
            (f"{one} * {two}", f"{one} - {two}", f"x + {one} * {two}")
            + (f"max({element()}, {element()})", f"min({element()}, 0.3) * {one}", f"x * {one}")
        )

    def statements(depth, tabs):
        pad = "    " * tabs
        out = []
        for _ in range(r.randint(1, 3)):
            kind = r.random()
            if kind < 0.45 or depth == 0:
                out.append(f"{pad}x = {value()}")
            else:
                both = f" {r.choice(('and', 'or'))} {test()}" if r.random() < 0.3 else ""
                out.append(f"{pad}if {test()}{both}:")
                out += statements(depth - 1, tabs + 1)
                if r.random() < 0.6:
                    out.append(f"{pad}else:")
                    out += statements(depth - 1, tabs + 1)
        return out

    born = r.choice(("u.copy()", "u.copy()", "np.zeros_like(u)", "u0.copy()"))
    lines = [
        "def f(u0, a, c, steps):",
        "    u = u0.copy()",
        "    for _ in range(steps):",
        f"        v = {born}",
    ]
    for k, i in enumerate(names):
        lines.append(f"{'    ' * (2 + k)}for {i} in range(1, u.shape[{k}] - 1):")
    tabs = 2 + rank
    pad = "    " * tabs
    lines += [f"{pad}x = {element()}", *statements(2, tabs)]
    if r.random() < 0.4:
        lines += [f"{pad}if {test()}:", f"{pad}    v{here} = x * c"]
    else:
        lines.append(f"{pad}v{here} = x")
    lines += ["        u = v", "    return np.sum(u * u * a)"]
    return "\n".join(lines) + "\n", rank


def check(seed, compiled=False):
    """Native and plain agree on the program number `seed`."""
    text, rank = program(seed)
    f = function(text)
    for n in range(2):
        values = np.random.default_rng(seed + n)
        shape = tuple(int(m) for m in values.integers(1, 8, rank))
        args = values.normal(size=shape), values.normal(size=shape), 0.3, n + 1
        agree(f, args, (0, 1, 2), compiled)


@pytest.mark.parametrize("part", range(6))
def test_random_branches_have_the_plain_tiers_gradient(part, taken):  # noqa: F811
    for seed in range(10 * part, 10 * part + count(4, 10)):
        check(seed)
    assert taken


@pytest.mark.parametrize("seed", some([1], [5]))
def test_random_branches_compiled_have_the_plain_tiers_gradient(seed):
    check(seed, compiled=True)
