"""Functions that others wrote for Numba, unmodified, differentiated natively, beside differences of what they compute.

A row is a package's module, a function, and arguments; packages that are not installed are skipped by name. Left out are
functions of the same packages that are refused: with `np.asarray` of a number, `np.cross` of lists.
"""

import numpy as np
import pytest

import plaingrad
from tests.native.comparison import assert_close, copied, leaves
from tests.sampling import ALL, is_in_sample

pytest.importorskip("numba")

X, Y = np.array([0.3, 0.7, 1.1, 0.5, 0.9]), np.array([0.6, 0.2, 0.8, 1.3, 0.35])
P, Q = X / X.sum(), Y / Y.sum()
METRIC = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.2]])
R, V = np.array([7000.0, -1200.0, 800.0]), np.array([1.1, 7.0, 0.8])
STATE = np.concatenate([R, V])

CASES = [
    *[
        ("fastdist.fastdist", name, (X, Y))
        for name in "braycurtis canberra chebyshev cityblock correlation cosine euclidean sqeuclidean".split()
    ],
    ("fastdist.fastdist", "jensenshannon", (P, Q)),
    ("fastdist.fastdist", "minkowski", (X, Y, 3)),
    ("fastdist.fastdist", "mahalanobis", (X[:3], Y[:3], METRIC)),
    ("fastdist.fastdist", "seuclidean", (X, Y, Y)),
    ("hapsira.core.angles", "D_to_nu", (0.3,)),
    ("hapsira.core.angles", "nu_to_D", (0.4,)),
    ("hapsira.core.angles", "nu_to_E", (0.5, 0.2)),
    ("hapsira.core.angles", "nu_to_F", (0.5, 1.4)),
    ("hapsira.core.angles", "E_to_nu", (0.4, 0.3)),
    ("hapsira.core.angles", "F_to_nu", (0.4, 1.3)),
    ("hapsira.core.angles", "M_to_D", (0.3,)),
    ("hapsira.core.angles", "E_to_M", (0.4, 0.3)),
    ("hapsira.core.angles", "F_to_M", (0.4, 1.3)),
    ("hapsira.core.angles", "D_to_M", (0.4,)),
    ("hapsira.core.angles", "fp_angle", (0.5, 0.2)),
    ("hapsira.core.elements", "eccentricity_vector", (398600.0, R, V)),
    ("hapsira.core.elements", "circular_velocity", (398600.0, 7000.0)),
    ("hapsira.core.elements", "coe2mee", (1.2, 0.1, 0.3, 0.4, 0.5, 0.6)),
    ("hapsira.core.perturbations", "J2_perturbation", (0.0, STATE, 398600.0, 1e-3, 6378.0)),
    ("hapsira.core.perturbations", "J3_perturbation", (0.0, STATE, 398600.0, 1e-3, 6378.0)),
    ("numba_stats.norm", "_logpdf", (X, 0.3, 0.8)),
    ("numba_stats.norm", "_cdf", (X, 0.3, 0.8)),
    ("numba_stats.laplace", "_logpdf", (X, 0.1, 0.8)),
    ("numba_stats.laplace", "_cdf", (X, 0.1, 0.8)),
    ("numba_stats.expon", "_logpdf", (X, 0.1, 0.8)),
    ("numba_stats.expon", "_cdf", (X, 0.1, 0.8)),
]


def weighed(y):
    """A number that every part of a result takes part in."""
    parts = [part for part in leaves(y) if part.dtype.kind == "f"]
    return sum(float(np.sum(np.cos(np.arange(part.size) + k).reshape(part.shape) * part)) for k, part in enumerate(parts))


def weights(y):
    """The cotangent that belongs to `weighed`."""
    parts = [np.cos(np.arange(part.size) + k).reshape(part.shape) for k, part in enumerate(leaves(y))]
    parts = [part if part.ndim else float(part) for part in parts]
    return tuple(parts) if isinstance(y, tuple) else parts[0]


def differences(f, args, k):
    """The gradient in one argument by central differences of the compiled function."""
    x = np.array(args[k], float)
    h = 1e-6 * max(1.0, np.abs(x).max())
    found = np.empty_like(x)
    for at in np.ndindex(x.shape):
        sides = []
        for step in (h, -h):
            moved = x.copy()
            moved[at] += step
            all_args = [copied(a) for a in args]
            all_args[k] = moved if x.ndim else float(moved)
            sides.append(weighed(f(*all_args)))
        found[at] = (sides[0] - sides[1]) / (2 * h)
    return found


@pytest.mark.parametrize("module, name, args", CASES, ids=[f"{module}.{name}" for module, name, _ in CASES])
def test_a_function_of_a_package_has_the_slopes_that_differences_show(module, name, args, request):
    if not ALL and not is_in_sample(request.node.nodeid, 8):
        pytest.skip("one in eight")
    f = getattr(pytest.importorskip(module, reason=f"{module.partition('.')[0]} is not installed"), name)
    y, pullback = plaingrad.vjp(f, *map(copied, args), tier="native")
    found = pullback(weights(y))
    for k, x in enumerate(args):
        if isinstance(x, (float, np.ndarray)):
            assert_close(found[k], differences(f, args, k), 2e-5, f"argument {k}")
