"""The forward half of every rule, called by itself: against differences, the rule's own pullback, and tangent by tangent.

Chunks of complex tangents, and in other layouts of memory, are tried at the first sample of each function and at one in
three of the others; at all of them with PLAINGRAD_TEST_ALL=1.
"""

import inspect
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from tests.rules.numpy.checks import (
    close, cotangent_of, inner, is_number, leaves, like, mapped, pull, random_like, same, shifted,
)
from tests.rules.numpy.samples import REAL_ONLY as REAL_ARRAYS
from tests.rules.numpy.samples import SAMPLES as ARRAYS
from tests.rules.samples import is_of_scipy
from tests.sampling import sample_of

from plaingrad import rulebook
from plaingrad.define import as_callable
from plaingrad.rules import elementwise
from plaingrad.rules.numpy.random_numbers import GENERATORS
from plaingrad.rules.python import arithmetic, averages, constructors
from plaingrad.tangents import NoTangent, ZeroTangent, is_zero

pytestmark = pytest.mark.filterwarnings("ignore")  # NumPy's own: empty slices, deprecated forms

# Numbers: what the samples of arrays leave out ----------------------------------------------------------------

v, w, m = np.array([0.7, -1.2, 2.4]), np.array([1.1, 0.37, -0.8]), np.array([[0.4, 1.9, -2.3], [1.3, -0.6, 0.9]])
SCALARS = {
    arithmetic._sum_of_numbers: [(0.5, 1.5, -2.5), (0, 1.5, 2 - 1j), (np.float64(1.5), 2.5)],
    math.hypot: [(3.0, 4.0), (1.0, -2.0, 2.5), (0.0, 0.0)],
    arithmetic._distance: [(2, 1.0, 2.0, 3.5, -4.0), (1, 2.0, 2.0)],
    arithmetic._exact_sum: [(0.5, 1.5, -2.5)],
    getattr(arithmetic, "_exact_sum_of_products", None): [(2, 1.0, 2.0, 3.5, -4.0)],
    averages._mean: [(0.5, 1.5, -2.5)],
    averages._float_mean: [(0.5, 1.5, -2.5)],
    averages._harmonic_mean: [(None, 0.5, 1.5), ([1.0, 2.0], 0.5, 1.5)],
    averages._spread: [(name, c, 0.5, 1.5, -2.5) for name in averages.SPREADS for c in (None, 0.4) if c is None or name != "_float_deviation"]
    + [("stdev", None, 1.5, 1.5)],
    float: [(1.5,), (np.float64(1.5),)], float.real: [(1.5,)], float.__float__: [(1.5,)], np.float64.__float__: [(np.float64(1.5),)],
    np.ndarray.__float__: [(np.array(1.5),)],
    complex.real: [(1.5 - 2j,)], complex.imag: [(1.5 - 2j,)], complex.__complex__: [(1.5 - 2j,)],
    constructors._complex: [(1.5,), (1.5, -0.5), (1.5 - 2j,)], float.__new__: [(float, 1.5)], complex.__new__: [(complex, 1.5, -2.5)],
    float.conjugate: [(1.5,)], complex.conjugate: [(1.5 - 2j,)], math.ldexp: [(1.5, 3), (1.5, -2)],
    np.conjugate: [(v,), (v + 1j,), (1.5 - 2j,)], np.ndarray.conj: [(v + 1j,)], np.ndarray.conjugate: [(v,)],
    np.sign: [(v,), (np.array([1.5, -0.5]),)], np.modf: [(v,), (1.3,)], np.frexp: [(v,), (1.3,)], np.ldexp: [(v, 3), (v, np.array([1, 2, -3])), (1.5, np.array([1, 2]))],
    np.divmod: [(m, w), (w, 0.45), (5.3, 2.0)],
}  # fmt: skip
if elementwise.SIGN_IS_DIRECTION:
    SCALARS[np.sign].append((v - 1j * w,))
ON_ARRAY_SCALARS = {
    "conj": (), "conjugate": (), "copy": (), "__copy__": (), "__array__": (), "__deepcopy__": ({},), "astype": (np.complex128,), "repeat": (3,),
    "take": ([0, 0],), "compress": ([True],), "T": (), "real": (), "imag": (), "transpose": (), "squeeze": (), "item": (), "tolist": (),
    "reshape": (1, 1), "ravel": (), "flatten": (), "sum": (), "mean": (), "cumsum": (), "var": (), "std": (), "prod": (), "cumprod": (),
    "__array_wrap__": (np.array(2.5),), "__getitem__": ((),),
}  # fmt: skip
for name, options in ON_ARRAY_SCALARS.items():
    SCALARS[vars(np.generic)[name]] = [(np.float64(1.5), *options)]
for name in ("max", "min"):
    SCALARS[vars(np.generic)[name]] = [(np.float64(1.5),)]
SCALARS[vars(np.generic)["clip"]] = [(np.float64(1.5), 0.5, 2.5), (np.float64(1.5), 2.0, 2.5)]
SCALARS = {f: [(args, {}) for args in samples] for f, samples in SCALARS.items() if f is not None}
SAMPLES = {**ARRAYS, **SCALARS}
REAL_ONLY = {*REAL_ARRAYS, *SCALARS}

FORWARD = [f for f in SAMPLES if rulebook.find(f) is not None and rulebook.find(f).frule is not None]
CHUNKED = [f for f in FORWARD if rulebook.find(f).chunked_frule is not None]
BY_KIND = [f for f in SAMPLES if rulebook.find(f) is not None and rulebook.find(f).frule is None and rulebook.find(f).kind in ("linear", "bilinear")]


def name_of(function):
    return getattr(function, "__qualname__", None) or getattr(function, "__name__", repr(function))


def structured(x, dot):
    """`x` with dot(leaf) in place of each real or complex number, zeros for integers in lists; NoTangent without any."""
    if is_number(x):
        return dot(x)
    if isinstance(x, (list, tuple)) and leaves(x):
        return type(x)([0.0 * dot(1.0) if is_zero(d) else d for d in [structured(part, dot) for part in x]])
    return NoTangent


def random_dots(rng, args, n=None):
    """A tangent for each argument; `n` of them along a leading axis."""

    def dot(x):
        if n is None:
            z = random_like(rng, x)
            return like(x, np.asarray(z, np.asarray(x).dtype)) if isinstance(x, np.ndarray) else type(x)(z)
        return np.stack([np.asarray(random_like(rng, x), np.asarray(x).dtype) for _ in range(n)])

    return tuple(structured(x, dot) for x in args)


def picked(dots, i):
    """Tangent `i` of a chunk."""
    return tuple(d if is_zero(d) else mapped(lambda x: x[i], d) for d in dots)


def flat_dots(y_dot, y):
    """The tangent of each number and array in `y`, in its shape."""
    if is_number(y):
        if is_zero(y_dot):
            return [np.zeros(np.shape(y))]
        assert np.iscomplexobj(y) or not np.iscomplexobj(y_dot), "a complex tangent of real numbers"
        return [np.broadcast_to(y_dot, np.shape(y))]
    if isinstance(y, (list, tuple)):
        parts = [y_dot] * len(y) if is_zero(y_dot) else y_dot
        assert len(parts) == len(y)
        return [leaf for d, part in zip(parts, y) for leaf in flat_dots(d, part)]
    return []


def pushforward_of(function, args, kwargs):
    """(y, the pushforward) of the rule, or of what its kind says."""
    rule = rulebook.find(function)
    if rule.frule is not None:
        return rule.frule(*args, **kwargs)
    call = as_callable(function)
    if rule.kind == "linear":
        return call(*args, **kwargs), lambda dots: call(dots[0], *args[1:], **kwargs)
    return call(*args, **kwargs), lambda dots: call(dots[0], *args[1:], **kwargs) + call(args[0], dots[1], *args[2:], **kwargs)


def is_coarse(args, y):
    return any(np.asarray(x).dtype.char in "efFgG" for x in [*leaves(args), *leaves(y)])


def alike(y, z):
    """Equal, but for the last bits: those of NumPy's complex products depend on where arrays lie in memory."""
    if isinstance(y, (list, tuple)):
        return len(y) == len(z) and all(alike(a, b) for a, b in zip(y, z))
    y, z = np.asarray(y), np.asarray(z)
    return same(y, z) or (y.dtype == z.dtype and y.shape == z.shape and np.allclose(y, z, 1e-5 if is_coarse([y], z) else 1e-14, equal_nan=True))


def check_forward(function, args, kwargs, steps=(1e-4, 1e-5, 1e-6)):
    """The value; <y_bar, y_dot> against the pullback and against differences; linearity, argument by argument."""
    rng = np.random.default_rng(len(repr(args)))
    rule = rulebook.find(function)
    call = as_callable(function)
    with np.errstate(all="ignore"):
        y = call(*args, **kwargs)
        again, push = pushforward_of(function, args, kwargs)
        dots = random_dots(rng, args)
        y_dots = flat_dots(push(dots), y)
        twice = flat_dots(push(tuple(d if is_zero(d) else mapped(lambda x: like(x, 2 * x), d) for d in dots)), y)
    assert alike(y, again), f"value {again!r}, not {y!r}"
    assert len(y_dots) == len(leaves(y))
    if not y_dots:
        return
    rtol = 2e-3 if is_coarse(args, y) else 2e-9
    if rule.frule is not None:
        one_by_one = []
        for k in range(len(dots)):
            alone = tuple(d if i == k else ZeroTangent for i, d in enumerate(dots))
            if not is_zero(dots[k]):
                with np.errstate(all="ignore"):
                    one_by_one.append(flat_dots(push(alone), y))
        for parts, whole, double in zip(zip(*one_by_one), y_dots, twice):
            np.testing.assert_allclose(sum(parts), whole, rtol=rtol, atol=rtol)
            np.testing.assert_allclose(double, 2 * whole, rtol=rtol, atol=rtol)
    y_bar = cotangent_of(rng, y)
    flat = leaves(y_bar)
    found = inner(flat, y_dots)
    directions = [leaf for d, x in zip(dots, args) for leaf in leaves(d if not is_zero(d) else ())]
    if rule.rrule is not None:
        _, bars = pull(rule, args, kwargs, y_bar)
        expected = inner(bars, directions[: len(bars)])
        assert close(found, expected, rtol), f"{function}: the pushforward gives {found}, the pullback {expected}"
    if is_coarse(args, y):
        return
    differences = []
    for h in steps:
        with np.errstate(all="ignore"):
            above, below = (leaves(call(*shifted(args, directions, s), **kwargs)) for s in (h, -h))
        differences.append(inner(flat, [(a - b) / (2 * h) for a, b in zip(above, below)]))
        if close(found, differences[-1], 2e-6):
            return
    raise AssertionError(f"{function}: the pushforward gives {found}, differences give {differences}")


def arrays_mapped(f, samples):
    return mapped(lambda x: f(x) if isinstance(x, np.ndarray) and x.ndim else x, samples)


def reversed_strides(x):
    """Equal to `x`, with negative strides."""
    backwards = (slice(None, None, -1),) * x.ndim
    return x[backwards].copy()[backwards]


def made_complex(args):
    rng = np.random.default_rng(3)
    return mapped(lambda x: like(x, x + 0.3j * rng.uniform(0.5, 1.5, np.shape(x))), args)


@pytest.mark.parametrize("function", [*FORWARD, *BY_KIND], ids=name_of)
def test_a_pushforward_agrees_with_the_pullback_and_with_differences(function):
    for args, kwargs in SAMPLES[function]:
        check_forward(function, args, kwargs)


@pytest.mark.parametrize("function", [f for f in (*FORWARD, *BY_KIND) if f not in REAL_ONLY], ids=name_of)
def test_a_pushforward_of_complex_numbers_agrees_with_the_pullback_and_with_differences(function):
    for args, kwargs in SAMPLES[function]:
        check_forward(function, made_complex(args), kwargs)


@pytest.mark.parametrize("function", [*FORWARD, *BY_KIND], ids=name_of)
def test_a_pushforward_does_not_depend_on_the_layout_of_memory(function):
    for args, kwargs in SAMPLES[function]:
        for layout in (np.asfortranarray, reversed_strides):
            check_forward(function, arrays_mapped(layout, args), kwargs)


def check_chunk(function, args, kwargs, n=3):
    """Each tangent of a chunk alone."""
    rng = np.random.default_rng(len(repr(args)))
    rule = rulebook.find(function)
    with np.errstate(all="ignore"):
        y, push = rule.chunked_frule(*args, **kwargs)
        plain_y, plain_push = rule.frule(*args, **kwargs)
    assert alike(y, plain_y)
    chunk = random_dots(rng, args, n)
    places = [k for k, d in enumerate(chunk) if not is_zero(d)]
    choices = [places] if len(places) < 2 else [places, *[[k] for k in places]]
    for chosen in choices:
        dots = tuple(d if k in chosen else ZeroTangent for k, d in enumerate(chunk))
        with np.errstate(all="ignore"):
            y_dot = push(dots)
            looped = [flat_dots(plain_push(picked(dots, i)), y) for i in range(n)]
        for leaf, y_leaf, expected in zip(flat_chunk(y_dot, y, n), leaves(y), zip(*looped), strict=True):
            rtol = 1e-4 if is_coarse(args, y) else 1e-9
            np.testing.assert_allclose(leaf, np.stack(expected), rtol=rtol, atol=rtol)


def flat_chunk(y_dot, y, n):
    """The tangents of each number and array in `y`, along a leading axis."""
    if is_number(y):
        if is_zero(y_dot):
            return [np.zeros((n, *np.shape(y)))]
        assert np.ndim(y_dot) == np.ndim(y) + 1, (np.shape(y_dot), np.shape(y))
        return [np.broadcast_to(y_dot, (n, *np.shape(y)))]
    if isinstance(y, (list, tuple)):
        parts = [y_dot] * len(y) if is_zero(y_dot) else y_dot
        return [leaf for d, part in zip(parts, y, strict=True) for leaf in flat_chunk(d, part, n)]
    return []


@pytest.mark.parametrize("function", CHUNKED, ids=name_of)
def test_a_chunk_of_tangents_is_pushed_as_each_of_them_is(function):
    for args, kwargs in SAMPLES[function]:
        check_chunk(function, args, kwargs)
    for args, kwargs in sample_of(SAMPLES[function], name_of(function), 3):
        if function not in REAL_ONLY:
            check_chunk(function, made_complex(args), kwargs)
        for layout in (np.asfortranarray, reversed_strides):
            check_chunk(function, arrays_mapped(layout, args), kwargs)


@pytest.mark.parametrize("function", [*FORWARD, *BY_KIND], ids=name_of)
def test_single_precision_is_kept(function):
    for args, kwargs in SAMPLES[function]:
        if "dtype" in kwargs or any(x is np.float64 for x in args):
            continue
        if not any(isinstance(x, np.ndarray) and x.ndim for x in args):
            continue
        single = arrays_mapped(lambda x: x.astype(np.float32), args)
        check_forward(function, single, kwargs)


@pytest.mark.parametrize("function", FORWARD, ids=name_of)
def test_both_halves_of_a_rule_name_their_parameters_alike(function):
    rule = rulebook.find(function)
    if rule.rrule is not None:
        for half in (rule.frule, rule.chunked_frule or rule.frule):
            assert parameters(half) == parameters(rule.rrule)


def parameters(function):
    return [(p.name, p.kind, p.default is inspect.Parameter.empty) for p in inspect.signature(function).parameters.values()]


# Completeness -------------------------------------------------------------------------------------------------

# Refused in both modes; or without numbers in what they give; or exact numbers, below; or of a random stream, below.
ELSEWHERE = {"without_rule", "drawn_choice", "drawn_gamma", "around_zero", "generic.base", "generic.flat"}
UNUSUAL = ("Decimal", "Fraction", "Rational", "lognormal", "float16", "float32", "longdouble", "__float__", "trace", "diagonal", "swapaxes", "newbyteorder")


def test_every_rule_with_a_pullback_has_samples_here():
    unsampled = []
    twins = {id(f.__wrapped__) for f in SAMPLES if hasattr(f, "__wrapped__")}
    for rule in rulebook.rules():
        if is_of_scipy(rule) or "/rules/" not in rule.source.replace("\\", "/"):  # other tests have rules for what has no hash
            continue
        if rule.kind in ("linear", "bilinear", "full") and rule.function not in SAMPLES:
            name = rule.name
            if name not in ELSEWHERE and not any(part in name for part in UNUSUAL) and id(rule.function) not in twins:
                unsampled.append(name)
    assert unsampled == []


def test_every_full_rule_has_a_forward_half():
    without = []
    for rule in rulebook.rules():
        if rule.kind == "full" and rule.frule is None and "/rules/" in rule.source.replace("\\", "/") and not is_of_scipy(rule):
            without.append(rule.name)
    assert set(without) <= ELSEWHERE


# Exact numbers ------------------------------------------------------------------------------------------------


def pushed(function, args, dots):
    y, push = rulebook.find(function).frule(*args)
    return y, push(dots)


@pytest.mark.parametrize("name", ["normalize", "canonical", "conjugate", "next_minus", "next_plus", "__copy__", "real"])
def test_a_decimal_next_to_another_has_its_tangent(name):
    x, x_dot = Decimal("1.50"), Decimal("-3.25")
    y, y_dot = pushed(vars(Decimal)[name], (x,), (x_dot,))
    assert abs(y - x) < Decimal("1e-20") and y_dot == x_dot


def test_tangents_change_type_with_their_numbers():
    assert pushed(Decimal, (0.5,), (0.25,))[1] == Decimal("0.25")
    assert type(pushed(Decimal, (0.5,), (0.25,))[1]) is Decimal
    assert type(pushed(Decimal.__float__, (Decimal("0.5"),), (Decimal("0.25"),))[1]) is float
    assert type(pushed(float, (np.float32(0.5),), (np.float32(0.25),))[1]) is float
    assert pushed(Decimal.from_float, (0.5,), (0.25,))[1] == Decimal("0.25")
    assert pushed(Fraction.__copy__, (Fraction(1, 2),), (Fraction(3),))[1] == 3
    assert pushed(Decimal.next_toward, (Decimal(1), Decimal(2)), (Decimal(3), ZeroTangent))[1] == 3


def test_the_tangent_of_a_fraction():
    x, y, x_dot, y_dot = Fraction(3, 2), Fraction(5, 7), Fraction(1, 3), Fraction(-2)
    z, z_dot = pushed(Fraction, (x, y), (x_dot, y_dot))
    assert z == x / y and z_dot == (x_dot * y - x * y_dot) / y**2
    assert pushed(Fraction, (x, y), (ZeroTangent, y_dot))[1] == -x * y_dot / y**2
    assert pushed(Fraction, (x,), (x_dot,))[1] == x_dot
    assert pushed(Fraction.from_float.__func__, (Fraction, 0.5), (NoTangent, 0.25))[1] == 0.25


# Matrices whose factors are known up to phases only --------------------------------------------------------------


def complex_matrix(rng, *shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def agrees_with_the_pullback(function, args, dots, y_dot, **options):
    rng = np.random.default_rng(5)
    y, pullback = rulebook.find(function).rrule(*args, **options)
    y_bar = cotangent_of(rng, y)
    (x_bar,) = pullback(y_bar)[:1]
    assert close(inner(leaves(y_bar), flat_dots(y_dot, y)), inner([x_bar], list(dots)), 1e-9)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 3)])
def test_the_tangents_of_complex_singular_vectors(shape):
    rng = np.random.default_rng(1)
    a, a_dot = complex_matrix(rng, *shape), complex_matrix(rng, *shape)
    (u, s, vh), push = rulebook.find(np.linalg.svd).frule(a, False)
    u_dot, s_dot, vh_dot = push((a_dot, NoTangent))
    product_dot = (u_dot * s[..., None, :]) @ vh + (u * s_dot[..., None, :]) @ vh + (u * s[..., None, :]) @ vh_dot
    np.testing.assert_allclose(product_dot, a_dot, atol=1e-12)
    skew = np.swapaxes(u.conj(), -1, -2) @ u_dot
    np.testing.assert_allclose(skew, -np.swapaxes(skew.conj(), -1, -2), atol=1e-12)
    agrees_with_the_pullback(np.linalg.svd, (a, False), (a_dot,), (u_dot, s_dot, vh_dot))


def test_the_columns_that_complete_a_basis_have_no_tangent():
    a = np.arange(6.0).reshape(3, 2) ** 2
    (u, s, vh), push = rulebook.find(np.linalg.svd).frule(a)
    u_dot, s_dot, vh_dot = push((np.ones((3, 2)),))
    assert np.isnan(u_dot[:, 2]).all() and np.isfinite(u_dot[:, :2]).all() and np.isfinite(vh_dot).all()
    (q, r), push = rulebook.find(np.linalg.qr).frule(a, "complete")
    q_dot, r_dot = push((np.ones((3, 2)), NoTangent))
    assert np.isnan(q_dot[:, 2]).all() and np.isfinite(q_dot[:, :2]).all() and (r_dot[2] == 0).all()


@pytest.mark.parametrize("triangle", ["L", "U"])
def test_the_tangents_of_complex_eigenvectors_of_a_hermitian_matrix(triangle):
    rng = np.random.default_rng(2)
    a, a_dot = complex_matrix(rng, 4, 4), complex_matrix(rng, 4, 4)
    (w, v), push = rulebook.find(np.linalg.eigh).frule(a, triangle)
    w_dot, v_dot = push((a_dot, NoTangent))
    half = np.tril if triangle == "L" else np.triu
    k = -1 if triangle == "L" else 1
    full = half(a_dot, k) + half(a_dot, k).conj().T + np.diag(np.diag(a_dot).real)
    product_dot = (v_dot * w) @ v.conj().T + (v * w_dot) @ v.conj().T + (v * w) @ v_dot.conj().T
    np.testing.assert_allclose(product_dot, full, atol=1e-12)
    agrees_with_the_pullback(np.linalg.eigh, (a, triangle), (a_dot,), (w_dot, v_dot))


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda g: g.__name__)
def test_a_lognormal_number_moves_with_its_parameters(generator):
    def stream():
        return np.random.default_rng(3) if generator is np.random.Generator else np.random.RandomState(3)

    draw = vars(generator)["lognormal"]
    mean, sigma, mean_dot, sigma_dot = np.array([0.3, -0.2]), 0.7, np.array([1.5, -0.5]), 0.4
    rule = rulebook.find(draw)
    z, push = rule.frule(stream(), mean, sigma)
    z_dot = push((NoTangent, mean_dot, sigma_dot))
    h = 1e-6
    up, down = [draw(stream(), mean + s * mean_dot, sigma + s * sigma_dot) for s in (h, -h)]
    np.testing.assert_allclose(z_dot, (up - down) / (2 * h), rtol=1e-8)
    chunk = rule.chunked_frule(stream(), mean, sigma)[1]((NoTangent, np.stack([mean_dot, 0 * mean_dot]), np.array([sigma_dot, 1.0])))
    np.testing.assert_allclose(chunk[0], z_dot, rtol=1e-14)


# The exponent of a power that is complex --------------------------------------------------------------------------


@pytest.mark.parametrize("x, y", [(-2.0, 0.3 + 0.4j), (-2.0, 0.5), (2.0, 0.3 - 0.4j), (-1.3 + 0.2j, 0.7)])
def test_the_slope_of_a_power_in_its_exponent(x, y):
    h = 1e-6
    slope = ((x ** (y + h)) - (x ** (y - h))) / (2 * h)
    assert elementwise.exponent_slope(x, y, x**y) == pytest.approx(slope, rel=1e-8)
    arrays = np.array([x]), np.array([y], complex)
    assert elementwise.exponent_slope(*arrays, arrays[0] ** arrays[1])[0] == pytest.approx(slope, rel=1e-8)
