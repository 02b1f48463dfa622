"""scipy.special: functions that return all degrees, and characteristic values in their parameter."""

import subprocess
import sys

import numpy as np
import pytest
from tests.scipy.agreement import agrees

import plaingrad

special = pytest.importorskip("scipy.special")
ANGLES = np.array([[10.0], [70.0]])


@pytest.mark.parametrize("name", ["riccati_jn", "riccati_yn", "lqn"])
def test_all_degrees_up_to_n(name):
    f = getattr(special, name)
    for n in (0, 3):
        agrees(lambda x, n=n: np.concatenate(f(n, x[0])), [0.37], nested=n == 3)
    if name == "lqn" and len(special.__all__) > 351:
        agrees(lambda x: np.concatenate(f(3, x)).ravel(), [0.3, 1.6, -0.5], tolerance=1e-6, nested=False)
        agrees(lambda x: np.concatenate(f(3, x * (1 + 0.3j))).ravel(), [0.3, -0.5], tolerance=1e-5, nested=False)


def test_all_orders_too():
    for m, x in ((0, 0.3), (2, 0.3), (2, 1.6)):
        agrees(lambda x, m=m: np.concatenate(special.lqmn(m, 3, x[0])), [x], tolerance=1e-5, nested=m == 2)


@pytest.mark.parametrize("q", [0.9, 4.4, 20.0, -3.3, 0.01])
def test_mathieu_in_q(q):
    for m in (0, 1, 2, 3, 7):
        agrees(lambda q, m=m: special.mathieu_a(m, q), [q], tolerance=1e-6, nested=m == 2)
        agrees(lambda p, m=m: np.array(special.mathieu_cem(m, *p)), [q, 33.0], tolerance=1e-6, nested=m == 3)
        if m:
            agrees(lambda q, m=m: special.mathieu_b(m, q), [q], tolerance=1e-6, nested=False)
            agrees(lambda p, m=m: np.array(special.mathieu_sem(m, *p)), [q, 33.0], tolerance=1e-6, nested=m == 2)
        if m and q > 0:
            agrees(lambda q, m=m: special.mathieu_even_coef(m, q[0])[:6], [q], tolerance=1e-6, nested=False)
            agrees(lambda q, m=m: special.mathieu_odd_coef(m, q[0])[:6], [q], tolerance=1e-6, nested=m == 2)


def test_mathieu_of_arrays():
    q, m = [0.5, 2.0, 7.0], np.array([0, 2, 5])
    agrees(lambda q: special.mathieu_a(m, q), q, tolerance=1e-6)
    agrees(lambda q: special.mathieu_cem(m, q, ANGLES)[0], q, tolerance=1e-6, nested=False)
    assert plaingrad.grad(lambda q: special.mathieu_a(2, q).sum())(np.ones(3, np.float32)).dtype == np.float32


def test_mathieu_for_small_q():
    """a_0(q) = -q^2 / 2 + ..., DLMF 28.6.1."""
    slope = plaingrad.grad(lambda q: special.mathieu_a(0, q))
    assert slope(1e-3) == pytest.approx(-1e-3 + 7 * 4 / 128 * 1e-9, rel=1e-9)
    assert plaingrad.grad(slope)(1e-3) == pytest.approx(-1.0, abs=1e-5)


@pytest.mark.parametrize("name", ["pro_cv", "obl_cv"])
def test_spheroidal_values_in_c(name):
    f, sequence = getattr(special, name), getattr(special, f"{name}_seq")
    for c in (0.3, 2.0, 8.0):
        for m, n in ((0, 0), (0, 1), (1, 4), (2, 5)):
            agrees(lambda c, m=m, n=n: f(m, n, c), [c], tolerance=1e-6, nested=(m, n) == (1, 4))
        agrees(lambda c: sequence(1, 4, c[0]), [c], tolerance=1e-6, nested=False)
    agrees(lambda c: f(1, np.array([[1], [3]]), c), [0.4, 2.0], tolerance=1e-6, nested=False)


@pytest.mark.skipif(not hasattr(special, "legendre_p"), reason="SciPy 1.15 has it first")
def test_the_first_function_that_is_met_may_be_an_object():
    program = (
        "import plaingrad; from scipy import special\n"
        "print(plaingrad.grad(lambda x: special.legendre_p(3, x).sum())(0.5))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert float(done.stdout) == pytest.approx(7.5 * 0.25 - 1.5), done.stderr


@pytest.mark.skipif(not hasattr(special, "legendre_p"), reason="SciPy 1.15 has it first")
def test_an_object_whose_attributes_were_read_before_it_is_called():
    def f(x):
        assert special.legendre_p.__class__ is type(special.legendre_p)
        return special.legendre_p(3, x).sum()

    assert plaingrad.grad(f)(0.3) == pytest.approx(7.5 * 0.09 - 1.5)
    assert plaingrad.jvp(f, (0.3,), (1.0,))[1] == pytest.approx(7.5 * 0.09 - 1.5)
    assert plaingrad.hvp(f, (0.3,), (1.0,))[0] == pytest.approx(15 * 0.3)
