"""What is no function, or no tuple of arguments, is refused at once; a truth value is no number to differentiate."""

import math

import numpy as np
import pytest

import plaingrad
from plaingrad import ArgumentError, NonScalarOutputError, grad, hessian, value_and_grad
from plaingrad.testing import check_grads, check_rule

CALLS = {
    "grad": lambda f: plaingrad.grad(f),
    "value_and_grad": lambda f: plaingrad.value_and_grad(f),
    "derivative": lambda f: plaingrad.derivative(f),
    "jacobian": lambda f: plaingrad.jacobian(f),
    "hessian": lambda f: plaingrad.hessian(f),
    "wirtinger": lambda f: plaingrad.wirtinger(f),
    "vjp": lambda f: plaingrad.vjp(f, 1.0),
    "jvp": lambda f: plaingrad.jvp(f, (1.0,), (1.0,)),
    "linearize": lambda f: plaingrad.linearize(f, 1.0),
    "hvp": lambda f: plaingrad.hvp(f, (1.0,), (1.0,)),
    "vhp": lambda f: plaingrad.vhp(f, (1.0,), (1.0,)),
    "taylor": lambda f: plaingrad.taylor(f, 1.0, 2),
    "forwarddiff": lambda f: plaingrad.forwarddiff(f, 1.0),
    "sparsity": lambda f: plaingrad.sparsity(f, np.ones(2)),
    "sparse_jacobian": lambda f: plaingrad.sparse_jacobian(f, np.ones(2)),
    "sparse_hessian": lambda f: plaingrad.sparse_hessian(f, np.ones(2)),
    "checkpoint": lambda f: plaingrad.checkpoint(f),
    "checkpointed": lambda f: plaingrad.checkpointed(f),
    "checkpoint_sequence": lambda f: plaingrad.checkpoint_sequence(f, 1.0, 3, 1),
    "compiled_jacobian": lambda f: plaingrad.compiled_jacobian(f, np.ones(2)),
    "check_grads": lambda f: check_grads(f, (1.0,)),
    "check_rule": lambda f: check_rule(f, 1.0),
}


@pytest.mark.parametrize("value", [3.0, None, "sin", np.ones(2), [math.sin]], ids=repr)
@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_function_is_refused_at_once(name, value):
    with pytest.raises(ArgumentError, match=f"the first argument of {name} must be a function, not a"):
        CALLS[name](value)


@pytest.mark.parametrize("args", [2.0, "ab", np.ones(2), None], ids=repr)
def test_check_grads_takes_the_arguments_in_a_tuple(args):
    with pytest.raises(ArgumentError, match="in a tuple"):
        check_grads(lambda x: x, args)


@pytest.mark.parametrize(
    "f", [lambda x: x > 1, lambda x: np.float64(x) > 1, lambda x: bool(x), lambda x: np.array(x > 1), lambda x: not x]
)
@pytest.mark.parametrize("operator", [grad, value_and_grad, hessian, lambda f: grad(lambda x: grad(f)(x))])
def test_a_truth_value_has_no_gradient(f, operator):
    with pytest.raises(NonScalarOutputError, match="one real number"):
        operator(f)(2.0)


def test_a_truth_value_has_no_gradient_natively():
    with pytest.raises(NonScalarOutputError, match="bool"):
        grad(lambda x: x > 1.0, tier="native")(2.0)


def test_an_int_is_a_constant_number():
    assert grad(lambda x: x * x if x > 0 else 0)(-2.0) == 0.0
    assert grad(lambda x: np.int64(3))(2.0) == 0.0
    assert grad(lambda x: 3 if x > 0 else x * x, tier="native")(-2.0) == -4.0
