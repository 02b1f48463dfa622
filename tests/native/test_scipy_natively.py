"""Functions of scipy.special in the native tier: in plain Python, by their addresses, and by overloads of the user's."""

import ctypes
import math
import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

numba = pytest.importorskip("numba")
special = pytest.importorskip("scipy.special")
mpmath = pytest.importorskip("mpmath")

from numba.extending import get_cython_function_address, overload  # noqa: E402

import plaingrad  # noqa: E402
from plaingrad import rulebook  # noqa: E402
from plaingrad.errors import NativeError  # noqa: E402
from plaingrad.native.rules import scalars  # noqa: E402
from plaingrad.native.runtime import special_functions  # noqa: E402
from plaingrad.native.runtime.special_tails import incomplete  # noqa: E402
from tests.native.uncompiled import check  # noqa: E402
from tests.rules.scipy.special_table import REAL  # noqa: E402
from tests.rules.scipy.test_special_accuracy import ACCURACY, LESS, slope_in_mpmath  # noqa: E402
from tests.sampling import count, is_in_sample  # noqa: E402

X = np.array([0.4, 1.3, 2.2])


# In loops and over arrays ----------------------------------------------------------------------------------------


def negative_log_likelihood(shape, rate, x):
    total = 0.0
    for i in range(x.size):
        total += special.gammaln(shape) - shape * math.log(rate) - (shape - 1) * math.log(x[i]) + rate * x[i]
    return total


def censored(shape, rate, x):
    total = 0.0
    for u in x:
        if u > 2:
            total -= math.log(special.gammaincc(shape, rate * u))
        else:
            total += special.xlogy(shape, rate * u) - special.log_ndtr(u) * special.jv(0.5, u)
    return total


@pytest.mark.parametrize("f", [negative_log_likelihood, censored])
def test_functions_of_scipy_in_loops_agree_with_the_plain_tier_and_differences(f):
    check(f, 1.7, 0.8, X)


def test_compiled_a_likelihood_has_the_derivatives_of_first_and_second_order():
    first = plaingrad.grad(negative_log_likelihood, argnums=(0, 1), tier="native")(1.7, 0.8, X)
    np.testing.assert_allclose(first[0], 3 * (float(mpmath.digamma(1.7)) - math.log(0.8)) - np.log(X).sum(), rtol=1e-13)
    np.testing.assert_allclose(first[1], X.sum() - 3 * 1.7 / 0.8, rtol=1e-13)
    second = plaingrad.hessian(negative_log_likelihood, argnums=0, tier="native")(1.7, 0.8, X)
    np.testing.assert_allclose(second, 3 * float(mpmath.polygamma(1, 1.7)), rtol=1e-13)


def of_arrays(x, shape):
    return np.sum(special.erf(x) * x) + np.sum(special.gammainc(shape, x.reshape((3, 1))))


def test_compiled_functions_of_scipy_take_arrays_that_are_broadcast():
    shape = np.array([0.7, 2.0])
    found = plaingrad.grad(of_arrays, argnums=(0, 1), tier="native")(X, shape)
    slopes = [math.erf(x) + x * 2 / math.sqrt(math.pi) * math.exp(-x * x) for x in X]
    density = [sum(math.exp(-x) * x ** (a - 1) / math.gamma(a) for a in shape) for x in X]
    np.testing.assert_allclose(found[0], np.add(slopes, density), rtol=1e-12)
    truth = [sum(float(slope_in_mpmath(REAL["gammainc"][0], (a, x), 0)) for x in X) for a in shape]
    np.testing.assert_allclose(found[1], truth, rtol=1e-10)
    _, forward = plaingrad.jvp(of_arrays, (X, shape), (np.ones(3), np.ones(2)), tier="native")
    np.testing.assert_allclose(forward, np.sum(found[0]) + np.sum(found[1]), rtol=1e-12)


def gaussian_tail(x):
    return special.ndtr(x) * special.expit(x)


def test_compiled_single_precision_and_whole_numbers_keep_their_kinds():
    slope = plaingrad.grad(gaussian_tail, tier="native")(np.float32(0.4))
    assert slope.dtype == np.float32
    np.testing.assert_allclose(slope, plaingrad.grad(gaussian_tail, tier="native")(0.4), rtol=1e-6)

    def with_a_whole_number(x, n):
        return special.jv(n, x) + special.eval_legendre(n, x)

    found = plaingrad.grad(with_a_whole_number, tier="native")(0.6, 2)
    truth = mpmath.diff(lambda x: mpmath.besselj(2, x) + mpmath.legendre(2, x), 0.6)
    np.testing.assert_allclose(found, float(truth), rtol=1e-12)


# By their addresses, and by overloads ----------------------------------------------------------------------------

DOUBLE = ctypes.c_double
log_gamma = ctypes.CFUNCTYPE(DOUBLE, DOUBLE)(
    get_cython_function_address("scipy.special.cython_special", "gammaln")
)
beta_tail = ctypes.CFUNCTYPE(DOUBLE, DOUBLE, DOUBLE)(
    get_cython_function_address("scipy.special.cython_special", "__pyx_fuse_1iv")
)
wrong_types = ctypes.CFUNCTYPE(DOUBLE, ctypes.c_long)(
    get_cython_function_address("scipy.special.cython_special", "gammaln")
)


@numba.njit
def by_address(x):
    return log_gamma(x) * x + beta_tail(0.5, x)


def test_compiled_functions_made_from_addresses_are_known_by_them():
    truth = lambda x: mpmath.loggamma(x) * x + mpmath.besseli(0.5, x)  # noqa: E731
    for x in (0.7, 3.2):
        np.testing.assert_allclose(plaingrad.grad(by_address)(x), float(mpmath.diff(truth, x)), rtol=1e-12)
        np.testing.assert_allclose(
            plaingrad.hessian(by_address)(x), float(mpmath.diff(truth, x, 2)), rtol=1e-10
        )


def test_other_c_code_that_is_called_by_its_address_is_refused():
    cosine = ctypes.CDLL(None).cos
    cosine.restype, cosine.argtypes = DOUBLE, [DOUBLE]
    with pytest.raises(NativeError, match="`cosine`, C code that is known by its address only, at .*test_scipy_natively"):
        plaingrad.grad(numba.njit(lambda x: cosine(x) * x), tier="native")(1.2)
    assert special_functions.of_address(wrong_types) is None


@overload(special.pseudo_huber)
def _pseudo_huber(delta, r):  # as libraries do that bring Numba to SciPy
    if isinstance(r, numba.types.Array):
        return lambda delta, r: delta * delta * (np.sqrt(1 + (r / delta) ** 2) - 1)
    return lambda delta, r: delta * delta * (math.sqrt(1 + (r / delta) ** 2) - 1)


@numba.njit
def losses(delta, r):
    total = 0.0
    for i in range(r.size):
        total += special.pseudo_huber(delta, r[i])
    return total


@numba.njit
def losses_at_once(delta, r):
    return np.sum(special.pseudo_huber(delta, r))


@pytest.mark.parametrize("f", [losses, losses_at_once])
def test_compiled_overloads_of_the_user_have_the_rules_of_scipy(f):
    r, delta = np.array([0.4, -1.3, 5.0]), 0.8
    root = np.sqrt(1 + (r / delta) ** 2)
    in_delta = np.sum(2 * delta * (root - 1) - r**2 / delta / root)
    found = plaingrad.grad(f, argnums=(0, 1), tier="native")(delta, r)
    np.testing.assert_allclose(found[0], in_delta, rtol=1e-12)
    np.testing.assert_allclose(found[1], r / root, rtol=1e-12)
    _, forward = plaingrad.jvp(f, (delta, r), (1.0, np.ones(3)), tier="native")
    np.testing.assert_allclose(forward, in_delta + np.sum(r / root), rtol=1e-12)


# Every slope ------------------------------------------------------------------------------------------------------


def compiled(partial, n):
    """A slope of n arguments, to be called from Python."""
    slope = scalars.compiled_partial(partial)
    return numba.njit(
        {
            1: lambda a, z: slope(np, a, z),
            2: lambda a, b, z: slope(np, a, b, z),
            3: lambda a, b, c, z: slope(np, a, b, c, z),
            4: lambda a, b, c, d, z: slope(np, a, b, c, d, z),
        }[n]
    )


def slopes():
    """(name, place, partial) of every slope of a function that compiled code can call."""
    for name in sorted(special_functions.pointers()):
        for k, partial in enumerate(scalars.row_of(getattr(special, name)) or ()):
            if callable(partial):
                yield name, k, partial


REFUSED = {  # what needs arrays of nodes, or complex functions
    "chndtr", "chndtrix", "chndtridf", "chndtrinc", "ncfdtr", "ncfdtri", "ncfdtridfn", "ncfdtridfd", "ncfdtrinc", "nctdtr",
    "nctdtrit", "nctdtridf", "nctdtrinc", "voigt_profile", "mathieu_a", "mathieu_b", "obl_cv", "pro_cv", "hyperu", "smirnov", "smirnovi", "zetac",
    "struve", "modstruve", "jv", "yv", "iv", "kv", "jve", "yve", "ive", "kve", "hyp0f1", "hyp1f1", "hyp2f1", "wright_bessel",
    "log_wright_bessel", "eval_chebyt", "eval_jacobi", "eval_legendre", "eval_sh_legendre", "eval_gegenbauer",
    "eval_genlaguerre", "eval_laguerre", "eval_sh_jacobi", "lpmv", "stdtr", "stdtrit", "stdtridf",
}  # fmt: skip


def test_slopes_without_a_native_form_are_these_and_are_refused_by_name():
    refused = set()
    for name, _, partial in slopes():
        try:
            scalars.compiled_partial(partial)
        except scalars.Unavailable:
            refused.add(name)
    assert refused <= REFUSED
    with pytest.raises(NativeError, match="a derivative of `scipy.special.jv` in argument 0 at .*test_scipy_natively"):
        plaingrad.grad(lambda v: special.jv(v, 2.0), tier="native")(1.3)
    with pytest.raises(NativeError, match="a derivative of `scipy.special.besselpoly` in argument 1 at"):
        plaingrad.grad(lambda v: special.besselpoly(0.5, v, 2.0), tier="native")(1.3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, k, partial", [s for s in slopes() if is_in_sample(f"{s[0]} {s[1]}", 20)])
def test_compiled_slopes_agree_with_mpmath(name, k, partial):
    function = getattr(special, name)
    try:
        slope = compiled(partial, function.nin)
    except scalars.Unavailable:
        pytest.skip("refused")
    if name not in REAL:  # then with the plain tier, which is tested
        plain = rulebook.find(function)
        for args in zip(*plain.domain, strict=True):
            args = tuple(map(float, args))
            z = float(function(*args))
            np.testing.assert_allclose(slope(*args, z), plain.partials[k](np, *args, z), rtol=1e-11)
        return
    f, samplers = REAL[name]
    rng = np.random.default_rng(zlib.crc32(f"natively {name}".encode()))
    for _ in range(count(2, 8)):
        args = [sampler(rng) for sampler in samplers]
        truth = slope_in_mpmath(f, args, k)
        if type(args[k]) is not int and abs(truth) > 1e-30:
            found = slope(*map(float, args), float(function(*args)))
            assert abs(found - truth) <= LESS.get(name, ACCURACY) * abs(truth), (args, k, found, truth)


MODEL = """
from scipy import special

def model(a, x):
    total = 0.0
    for i in range(x.size):
        total += special.gammaln(a * x[i]) * special.ndtri(0.1 * a)
    return total
"""
RUN = """
import sys
import numpy as np
import plaingrad
if "overloaded" in sys.argv:
    from numba.extending import overload
    from scipy import special
    overload(special.gammaln)(lambda x: lambda x: 2.0 * x)
elif "again" in sys.argv:
    from plaingrad.native.border import call
    from plaingrad.native.compile import build
    def refused(*args):
        raise AssertionError("the front end was run")
    build.program = call.program = refused
import model
value, (slope, slopes) = plaingrad.value_and_grad(model.model, (0, 1), tier="native")(1.3, np.array([0.4, 1.2]))
print(value, slope, *slopes)
"""


@pytest.mark.slow
def test_compiled_programs_are_kept_on_disk_for_other_processes_but_not_for_other_overloads(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    path = os.pathsep.join((str(Path(plaingrad.__file__).parents[1]), str(tmp_path)))
    space = {**os.environ, "PYTHONPATH": path, "PLAINGRAD_CACHE_DIR": str(tmp_path / "kept")}

    def run(how):
        done = subprocess.run([sys.executable, "-c", RUN, how], env=space, capture_output=True, text=True, timeout=170)
        assert done.returncode == 0, done.stderr
        return [float(word) for word in done.stdout.split()]

    first = run("first")
    model: dict = {}
    exec(MODEL, model)
    value, plain = plaingrad.value_and_grad(model["model"], (0, 1), tier="plain")(1.3, np.array([0.4, 1.2]))
    np.testing.assert_allclose(first, [value, plain[0], *plain[1]], rtol=1e-11)
    assert run("again") == first
    assert run("overloaded")[0] != first[0]


def test_compiled_densities_keep_their_digits_where_parameters_are_large():
    gamma = numba.njit(lambda a, x: incomplete.gamma_density(a, x))
    beta = numba.njit(lambda a, b, x: incomplete.beta_density(a, b, x))
    with mpmath.workdps(40):
        for a, x in ((1e7, 1.0003e7), (300.0, 120.0), (11.9, 30.0), (12.1, 700.0), (1e-6, 2.0), (0.3, 1e-9)):
            p, q = mpmath.mpf(a), mpmath.mpf(x)
            truth = mpmath.exp((p - 1) * mpmath.log(q) - q - mpmath.loggamma(p))
            assert abs(gamma(a, x) / truth - 1) < 2e-12, (a, x)
        for a, b, x in ((1e6, 3e5, 0.769), (200.0, 3.0, 0.98), (0.02, 0.3, 0.4), (13.0, 1e-3, 0.2), (0.3, 2.0, 1e-12)):
            p, q, y = map(mpmath.mpf, (a, b, x))
            truth = y ** (p - 1) * (1 - y) ** (q - 1) / mpmath.beta(p, q)
            assert abs(beta(a, b, x) / truth - 1) < 2e-12, (a, b, x)


def test_compiled_slopes_in_shapes_agree_with_mpmath_where_series_and_integrals_meet():
    gamma = numba.njit(lambda a, x: incomplete.gammainc_in_a(a, x))
    first = numba.njit(lambda a, b, x: incomplete.betainc_in_a(a, b, x))
    second = numba.njit(lambda a, b, x: incomplete.betainc_in_b(a, b, x))
    for a, x in ((2.5, 24.999), (2.5, 25.001), (1000.0, 990.0), (1000.1, 990.0), (0.3, 12.0), (40.0, 75.0), (1e-3, 2e-3)):
        truth = slope_in_mpmath(REAL["gammainc"][0], (a, x), 0)
        assert abs(gamma(a, x) - truth) <= 2e-11 * abs(truth), (a, x)
    for a, b, x in ((2.0, 3.0, 0.3999), (2.0, 3.0, 0.4001), (999.0, 2.0, 0.997), (0.2, 0.1, 0.6), (30.0, 0.05, 0.9), (5.0, 80.0, 0.2)):
        for f, k in ((first, 0), (second, 1)):
            truth = slope_in_mpmath(REAL["betainc"][0], (a, b, x), k)
            assert abs(f(a, b, x) - truth) <= 2e-11 * abs(truth), (a, b, x, k)


def tails_of_distributions(a, b, x):
    return special.gammaincc(a, x) + special.betainc(a, b, x / 4) * b


@pytest.mark.slow
def test_compiled_second_derivatives_in_shapes_agree_with_mpmath():
    def truth(a, b, x):
        return mpmath.gammainc(a, x, mpmath.inf, regularized=True) + b * mpmath.betainc(a, b, 0, x / 4, regularized=True)

    with mpmath.workdps(30):
        for args in ((1.7, 0.8, 0.6), (0.9, 2.3, 2.9)):
            for k in range(2):
                found = plaingrad.hessian(tails_of_distributions, argnums=k, tier="native")(*args)
                orders = [2 if n == k else 0 for n in range(3)]
                np.testing.assert_allclose(found, float(mpmath.diff(truth, args, tuple(orders))), rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_compiled_ends_of_distributions_are_those_of_the_plain_tier():
    def of_gamma(a, x):
        return special.gammainc(a, x)

    def of_beta(a, x):
        return special.betainc(a, 2.0, x)

    edges = ((1.0, 0.0), (2.5, 0.0), (1.5, 1.0), (-1.0, 0.5), (math.nan, 0.5), (1.5, math.nan))
    for f, points in ((of_gamma, (*edges, (2.5, math.inf), (0.0, 0.5))), (of_beta, edges)):
        native = plaingrad.grad(f, argnums=(0, 1), tier="native")
        plain = plaingrad.grad(f, argnums=(0, 1), tier="plain")
        for a, x in points:
            np.testing.assert_allclose(native(a, x), plain(a, x), rtol=1e-11, equal_nan=True, err_msg=f"{f} {a} {x}")
