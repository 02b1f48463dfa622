"""grad(f), jacobian(f) and the like as objects: pickled, copied, compared, sent to other processes, used as methods."""

import concurrent.futures
import copy
import inspect
import math
import pickle
import pydoc

import numpy as np
import pytest

import plaingrad
from plaingrad import derivative, grad, hessian, jacobian, value_and_grad, wirtinger

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*")


def cubed(x):
    """The cube."""
    return x * x * x


def double(x):
    """2 x."""
    return x * 2.0


OPERATORS = [
    (grad, cubed, {}, 2.0, 12.0),
    (grad, cubed, {"argnums": (0,), "tier": "plain"}, 2.0, (12.0,)),
    (value_and_grad, cubed, {}, 2.0, (8.0, 12.0)),
    (derivative, cubed, {"order": 2}, 2.0, 12.0),
    (derivative, cubed, {"value": True}, 2.0, (8.0, 12.0)),
    (jacobian, cubed, {"mode": "forward"}, 2.0, 12.0),
    (hessian, cubed, {"chunk_size": 1}, 2.0, 12.0),
    (grad, cubed, {"tier": "fastest"}, 2.0, 12.0),
    (wirtinger, cubed, {}, 1j, (-3.0 + 0j, 0j)),
]


@pytest.mark.parametrize(("operator", "f", "options", "x", "expected"), OPERATORS)
def test_they_are_pickled_copied_and_compared_as_what_made_them(operator, f, options, x, expected):
    made = operator(f, **options)
    assert made(x) == expected
    for again in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made), operator(f, **options)):
        assert again == made and hash(again) == hash(made) and again(x) == expected
    assert made != operator(double, **options)
    assert made != f and grad(f, has_aux=True) != grad(f)


def test_a_gradient_of_a_gradient_is_pickled():
    second = pickle.loads(pickle.dumps(grad(grad(cubed))))
    assert second(2.0) == 12.0 and second == grad(grad(cubed))


def test_lambdas_travel_by_cloudpickle():
    cloudpickle = pytest.importorskip("cloudpickle")
    k = 3.0
    made = cloudpickle.loads(cloudpickle.dumps(grad(lambda x: k * x * x)))
    assert made(2.0) == 12.0
    with pytest.raises(Exception, match="lambda"):
        pickle.dumps(grad(lambda x: x))


def test_other_processes_compute_gradients():
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        assert list(pool.map(grad(cubed), [1.0, 2.0])) == [3.0, 12.0]

    def f(x):
        with concurrent.futures.ProcessPoolExecutor(1) as pool:
            return pool.submit(grad(cubed), x).result() * x

    assert grad(f)(2.0) == 9.0 * 4.0  # d/dx of 3 x^3


def test_inside_other_derivatives_they_are_differentiated():
    slope = grad(lambda x, k: math.sin(k * x))
    matrix = jacobian(lambda x: np.array([x[0] * x[1], x[1] ** 3]))
    x = 0.3
    expected = 2 * x * math.cos(x * x) + x * x * -2 * x * math.sin(x * x)
    assert grad(lambda x: x * slope(x, x))(x) == pytest.approx(
        # d/dx [x * x cos(x x)]
        expected,
        rel=1e-13,
    )
    found = grad(lambda a: np.sum(matrix(a)))(np.array([2.0, 3.0]))
    np.testing.assert_allclose(found, [1.0, 1.0 + 18.0])
    assert plaingrad.jvp(lambda x: hessian(cubed)(x), (2.0,), (1.0,)) == (12.0, 6.0)


def test_one_as_the_method_of_a_class():
    class Spring:
        stiffness = 3.0

        def energy(self, x):
            return self.stiffness * x * x

        force = grad(energy, argnums=1)

    assert Spring().force(2.0) == 12.0
    assert grad(lambda x: Spring().force(x) * x)(2.0) == 24.0


def test_help_says_that_it_is_a_gradient():
    made = grad(cubed)
    assert made.__name__ == "cubed" and made.__wrapped__ is cubed
    assert "The gradient of cubed" in pydoc.plain(pydoc.render_doc(made))
    assert str(inspect.signature(made)) == str(inspect.signature(cubed))
    assert "plaingrad.grad" in repr(made) and "cubed" in repr(made)
