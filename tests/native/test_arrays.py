"""Rules of whole arrays, natively: both modes against central differences and the plain tier."""

import contextlib
import dataclasses

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from plaingrad.native.compile import build  # noqa: E402
from tests.native import comparison  # noqa: E402
from tests.native.typing_only import typing_only  # noqa: E402
from tests.sampling import some  # noqa: E402

RANDOM = np.random.default_rng(0)


def real(*shape):
    return RANDOM.uniform(0.2, 0.9, shape)


def complex_(*shape):
    return real(*shape) + 1j * real(*shape)


def spd(n):
    a = real(n, n)
    return a @ a.T + n * np.eye(n)


V, W, M, N, T = real(4), real(4), real(3, 4), real(4, 2), real(2, 3, 4)
S, B = real(3, 3) + 2 * np.eye(3), real(3)
HERMITIAN = complex_(3, 3) + 4 * np.eye(3)
CASES = [
    ("sum", lambda x: np.sum(x) * x[0], V),
    ("sum_axis", lambda x: np.sum(x, axis=0), T),
    ("sum_method_last_axis", lambda x: x.sum(axis=-1), M),
    ("mean", lambda x: x.mean(), M),
    ("prod", lambda x: np.prod(x), V),
    ("prod_with_a_zero", lambda x: np.prod(x), np.array([0.5, 0.0, 2.0])),
    ("max_min_ptp", lambda x: np.max(x) * x.min() + np.ptp(x), M),
    ("var_std", lambda x: np.var(x) + x.std(), M),
    ("nansum_nanmean", lambda x: np.nansum(x) * np.nanmean(x), V),
    ("cumsum_cumprod", lambda x: np.cumsum(x) * np.cumprod(x), V),
    ("cumprod_with_zeros", lambda x: np.cumprod(x), np.array([0.5, 0.0, 2.0, 0.0])),
    ("cumsum_of_a_matrix", lambda x: x.cumsum(), M),
    ("empty_sum", lambda x: np.sum(x * 2.0) + 1.0, np.zeros(0)),
    ("sort_take", lambda x: np.sort(x) * np.take(x, np.array([3, 3, 0, 1])), V),
    ("dot_vectors", lambda x, y: np.dot(x, y), V, W),
    ("matrix_vector", lambda a, x: a @ x, M, V),
    ("vector_matrix", lambda x, a: x @ a, V, N),
    ("matrix_matrix", lambda a, b: np.dot(a, b), M, N),
    ("transposed_product", lambda a, b: a.T @ b, M, real(3, 2)),
    ("vdot_outer", lambda x, y: np.vdot(x, y) * np.outer(x, y), V, W),
    ("kron", lambda a, b: np.kron(a, b), M, real(2, 2)),
    ("cross", lambda a, b: np.cross(a, b), real(3), real(3)),
    ("solve_vector", lambda a, b: np.linalg.solve(a, b), S, B),
    ("solve_matrix", lambda a, b: np.linalg.solve(a, b), S, real(3, 2)),
    ("inv_det", lambda a: np.linalg.inv(a) * np.linalg.det(a), S),
    ("slogdet", lambda a: np.linalg.slogdet(a)[1] * a[0, 0], S),
    ("cholesky", lambda a: np.linalg.cholesky(a), spd(3)),
    ("norm", lambda a: np.linalg.norm(a), V),
    ("eigvalsh", lambda a: np.linalg.eigvalsh(a), spd(3)),
    ("where", lambda x, y: np.where(x > 0.5, x * y, y), V, W),
    ("where_with_a_number", lambda x, y: np.where(x > 0.5, x, y), V, 0.3),
    ("clip", lambda x: np.clip(x, 0.4, 0.7), V),
    ("maximum_minimum", lambda x, y: np.maximum(x, y) + np.minimum(x, 0.5) * y, V, W),
    ("interp", lambda x, fp: np.interp(x, np.array([0.0, 0.5, 1.0]), fp), V, real(3)),
    ("interp of knots", lambda x, xp: np.interp(x, xp, np.array([0.0, 2.0, 1.0])), V, np.array([-0.5, 0.45, 1.3])),
    ("diff_roll", lambda x: np.diff(x) * np.roll(x, 1)[1:], V),
    ("repeat_flip", lambda x: np.repeat(x, 2) * np.flip(np.repeat(x, 2)), V),
    ("trace_diag", lambda x: np.trace(x) * np.diag(x), S),
    ("diag_of_a_vector", lambda x: np.diag(x) @ x, V),
    ("tril_triu", lambda x: np.tril(x) @ np.triu(x, 1), S),
    ("reshape_transpose", lambda x: x.reshape((4, 3)).T * x, M),
    ("ravel_of_a_view", lambda x: x[:, 1:].ravel() * x[:, :3].copy().ravel(), M),
    ("ravel_of_a_transpose", lambda x: x.T.ravel() * x.ravel(), M),
    ("flatten_contiguous", lambda x: np.ascontiguousarray(x.T) * x.flatten()[0], M),
    ("broadcast", lambda x, y: x * y[:, None] + np.broadcast_to(x, (3, 4)), V, B),
    ("expand_dims", lambda x, y: np.expand_dims(x, 1) * y, V, W),
    ("concatenate", lambda x, y: np.concatenate((x, y * x[0], x[:2])), V, W),
    ("concatenate_axis", lambda x, y: np.concatenate((x, y), axis=1), M, real(3, 2)),
    ("stack", lambda x, y: np.stack((x, y * 2.0), axis=1), V, W),
    ("hstack_vstack", lambda x, y: np.vstack((x, y)) * np.hstack((x, y))[0], V, W),
    ("column_stack", lambda x, y: np.column_stack((x, y)), V, W),
    ("full_linspace", lambda a, b: np.full(3, a) * np.linspace(a, b, 3), 0.3, 0.9),
    ("fancy_read", lambda x: x[np.array([1, 1, 3])] * x[0], V),
    ("boolean_read", lambda x: np.sum(x[x > 0.5]), V),
    ("fancy_rows", lambda x: x[np.array([2, 0, 2])] * 2.0, M),
    ("fancy_in_a_tuple", lambda x: x[np.array([2, 0, 2]), 1] * 2.0, M),
    ("powers", lambda x, y: x**y + x**2 + np.power(x, 3.0) + 2.0**y, V, W),
    ("division", lambda x, y: x / y + 1.0 / y - x % y, V, W),
    ("exp_log", lambda x: np.exp(x) * np.log(x) + np.expm1(x) + np.log1p(x) + np.log2(x) + np.log10(x), V),
    ("roots", lambda x: np.sqrt(x) + np.cbrt(x) + np.square(x) + np.reciprocal(x), V),
    ("angles", lambda x: np.sin(x) + np.cos(x) + np.tan(x) + np.arcsin(x) + np.arccos(x) + np.arctan(x), V),
    ("hyperbolic", lambda x: np.sinh(x) + np.cosh(x) + np.tanh(x) + np.arcsinh(x) + np.arctanh(x), V),
    ("pairs", lambda x, y: np.arctan2(x, y) * np.hypot(x, y) + np.logaddexp(x, y), V, W),
    ("steps", lambda x: np.floor(x) + np.sign(x) * np.abs(x) + np.fmax(x, 0.5), V),
    ("broadcast_columns", lambda x, y: np.sin(x[:, None] + y) / y, V, real(1, 4)),
    ("strided", lambda x: np.sum(x[::-2] * x[::2]), V),
    ("complex_elementwise", lambda z: np.abs(np.exp(z) * z + z / (z + 2.0)), complex_(3)),
    ("complex_parts", lambda z: z.real * z.imag + np.conj(z).imag, complex_(3)),
    ("complex_product", lambda z: np.abs(np.dot(z, np.conj(z[0]))), complex_(3, 3)),
    ("complex_vdot", lambda x, y: np.abs(np.vdot(x, y)), complex_(3), complex_(3)),
    ("complex_solve", lambda a, b: np.abs(np.linalg.solve(a, b)), HERMITIAN, complex_(3)),
    ("complex_det_inv", lambda a: np.abs(np.linalg.det(a)) * np.abs(np.linalg.inv(a)), HERMITIAN),
    ("real_into_complex", lambda x: np.abs(x * (1.0 + 2.0j) + x * x), V),
    ("float32", lambda x: np.sum(np.exp(x) * x), V.astype(np.float32)),
    (
        "float32_product",
        lambda a, x: a @ x + np.float32(2.0) / x[0],
        M.astype(np.float32),
        V.astype(np.float32),
    ),
]


def reads_what_is_written_later(x):
    y = np.exp(x)
    z = y * x
    y[0] = 3.0
    z[1] = z[0] * y[0]
    return np.sum(z * y)


def swapped_buffers(u, w):
    for k in range(4):
        v = np.sin(u) * w + np.where(u > 0.5, u, 0.1 * k)
        v[k % 4] = u[0] * w[1]
        u, w = v, u
    return np.sum(u * w)


def writes_by_index(x, v):
    y = x * 2.0
    y[np.array([1, 1, 3])] = v
    y[y > 1.2] = 0.25 * v[0]
    y[np.array([0, 2])] += v[1]
    return np.sum(y * x)


def filled(x, c):
    y = np.empty(3)
    y.fill(c * x[0])
    y[1] = x[1] * 9.0
    y.sort()
    return y[2] * y[1] + np.sum(y * y)


def joined_in_a_loop(x):
    a = x
    for _ in range(3):
        a = np.concatenate((a[1:], a[:1] * a[1]))
        a[0] = np.max(a) * x[0]
    return np.sum(a * x)


def tuple_results(a):
    w, v = np.linalg.eigh(a)
    sign, logdet = np.linalg.slogdet(a)
    return np.sum(w) * w[0] + np.sum(v * v * w) + logdet + v[0, 0] * v[1, 0]


def array_of_numbers(x, y):
    a = np.array([x, y * x, 2.0])
    b = np.array([[x, 1.0], [y, x]])
    return a[0] * a[1] + np.sum(a * a) + np.sum(b @ b)


PROGRAMS = [
    (reads_what_is_written_later, V),
    (swapped_buffers, V, W),
    (writes_by_index, V, real(3)),
    (filled, V, 0.4),
    (joined_in_a_loop, V),
    (tuple_results, spd(3)),
    (array_of_numbers, 0.4, 0.7),
]
CASES += [(f.__name__, f, *args) for f, *args in PROGRAMS]
IDS = [case[0] for case in CASES]


def uncompiled(run):
    """A derived program in Python, with all that it calls."""
    if isinstance(run, build.Sweeps):
        return dataclasses.replace(run, forward=uncompiled(run.forward), backward=uncompiled(run.backward))
    return build.uncompiled(run, {})


def number(f):
    """`f` made a function of one real number: its result weighted and summed."""

    def weighted(*args):
        z = f(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])
        return float(np.sum(np.cos(np.arange(np.size(z))).reshape(np.shape(z)) * z))

    return weighted


def seed_of(z):
    return np.asarray(np.cos(np.arange(np.size(z))).reshape(np.shape(z)), np.asarray(z).dtype)


def copied(args):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


def prepared(mode, f, args, compiled):
    with contextlib.nullcontext() if compiled else typing_only():
        run = build.derived(mode, f, tuple(map(numba.typeof, args)), tuple(range(len(args)))).run
    return run if compiled else uncompiled(run)


def pulled_back(run, f, args):
    z = f(*copied(args))
    shadows = [np.zeros_like(a) for a in args if isinstance(a, np.ndarray)]
    seed = seed_of(z)
    out = run(*copied(args), seed if np.ndim(z) else float(seed), *shadows)
    np.testing.assert_allclose(out[0], z, rtol=1e-6 if seed.dtype == np.float32 else 1e-13)
    numbers = list(out[1:])
    return [shadows.pop(0) if isinstance(a, np.ndarray) else numbers.pop(0) for a in args]


def directions(args):
    random = np.random.default_rng(1)
    found = []
    for a in args:
        along = random.normal(size=np.shape(a))
        if np.iscomplexobj(a):
            along = along + 1j * random.normal(size=np.shape(a))
        found.append(np.asarray(along, a.dtype) if isinstance(a, np.ndarray) else float(along))
    return found


def check(f, args, compiled):
    gradient = pulled_back(prepared("pullback", f, args, compiled), f, args)
    single = any(getattr(a, "dtype", None) == np.float32 for a in args)
    for g, a in zip(gradient, args, strict=True):
        assert np.asarray(g).dtype == np.asarray(a).dtype
    plain = plaingrad.grad(number(f), tuple(range(len(args))))(*args)
    for g, p in zip(gradient, plain, strict=True):
        np.testing.assert_allclose(g, p, rtol=2e-5 if single else 1e-10, atol=1e-5 if single else 1e-11)
    along = directions(args)
    expected = float(sum(np.sum(np.conj(g) * d).real for g, d in zip(gradient, along, strict=True)))
    z, z_dot = prepared("pushforward", f, args, compiled)(*copied(args), *along)
    assert np.asarray(z_dot).dtype == np.asarray(z).dtype
    assert np.shape(z_dot) == np.shape(z)
    slope = float(np.sum(seed_of(z) * z_dot))
    assert abs(slope - expected) <= (1e-4 if single else 1e-10) * max(1.0, abs(expected))
    if not single:
        objective = number(f)

        def central(h):
            up = objective(*[a + h * d for a, d in zip(args, along, strict=True)])
            return (up - objective(*[a - h * d for a, d in zip(args, along, strict=True)])) / (2 * h)

        errors = [abs((4 * central(h / 2) - central(h)) / 3 - expected) for h in (1e-3, 1e-4, 1e-5)]
        assert min(errors) <= 1e-7 * max(1.0, abs(expected))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_both_modes_agree_with_differences_and_with_the_plain_tier(case):
    _, f, *args = case
    check(f, args, compiled=False)


COMPILED = some(["array_of_numbers"], ["fancy_in_a_tuple", "writes_by_index", "swapped_buffers", "tuple_results"])


@pytest.mark.parametrize("case", [case for case in CASES if case[0] in COMPILED], ids=lambda case: case[0])
def test_compiled_programs_agree_too(case):
    _, f, *args = case
    check(f, args, compiled=True)


REFUSED = [
    lambda x: np.sin(x, x).sum(),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_what_has_no_rule_is_refused(k):
    with pytest.raises(plaingrad.NativeError):
        plaingrad.grad(REFUSED[k], tier="native")(V.copy())
    with pytest.raises(plaingrad.NativeError):
        plaingrad.jvp(REFUSED[k], (V.copy(),), (V,), tier="native")


def test_equal_extremes_share_and_kinks_are_zero():
    def gradient(f, x):
        return plaingrad.grad(f, tier="native")(np.array(x)).tolist()

    assert gradient(lambda x: np.max(x) + np.std(x[:2] * 0.0), [1.0, 3.0, 3.0]) == [0.0, 0.5, 0.5]


@pytest.mark.parametrize(
    "shape, compiled",
    some(
        [((1, 1), False), ((1, 3), False), ((1, 1, 3), False), ((1, 1, 3), True)],
        [((1, 1), True), ((1, 3), True)],
    ),
    ids=str,
)
def test_arrays_with_more_axes_are_stored_where_numpy_does_so(shape, compiled):
    def f(a, x):
        a[:] = x
        return np.sum(a * np.array([1.0, 2.0, 4.0]))

    at, x = (0, 1), np.full(shape, 0.5)
    (value,), (to_a, to_x) = comparison.pulled_back(f, (np.ones(3), x), at, [1.0], compiled)
    assert value == 3.5
    np.testing.assert_array_equal(to_a, np.zeros(3))
    expected = np.array([1.0, 2.0, 4.0]) if shape[-1] == 3 else np.array([7.0])
    np.testing.assert_array_equal(to_x, expected.reshape(shape))
    y, y_dot = comparison.pushed_forward(f, (np.ones(3), x), at, [np.ones(3), x], compiled)
    assert (y, y_dot) == (3.5, 3.5)


def test_products_with_hessians_go_through_arrays_stored_into_fewer_axes():
    def f(x):
        a = np.empty(3)
        a[:] = x.reshape(1, 3)
        return np.sum(a * a * a)

    for tier in ("native", "plain"):
        (found,) = plaingrad.hvp(f, (np.array([0.5, 1.0, 2.0]),), (np.array([1.0, -1.0, 0.5]),), tier=tier)
        np.testing.assert_allclose(found, [3.0, -6.0, 6.0], rtol=1e-15)


@pytest.mark.parametrize("shape", [(1, 3), (2, 3), (1, 1)])
def test_arithmetic_in_place_with_an_array_of_more_axes_is_refused(shape):
    def f(a, x):
        a += x
        return np.sum(a)

    with pytest.raises(ValueError, match="non-broadcastable"):
        f(np.ones(3), np.ones(shape))
    with pytest.raises(plaingrad.NativeError, match="more axes"):
        plaingrad.grad(f, tier="native")(np.ones(3), np.ones(shape))
