"""Compiled functions of single packages that have a derivative by a formula."""

from __future__ import annotations

import numpy as np
import pytest

import plaingrad
from plaingrad import MissingRuleError
from plaingrad.rules.packages import hmmlearn as models
from plaingrad.rules.packages import mdanalysis
from plaingrad.rules.packages.formulas import by_formula
from plaingrad.testing import check_grads

START, STEPS = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.2, 0.8]])
B = np.array([[0.4, 0.3], [0.7, 0.2], [0.5, 0.6]])


def likelihood(start, steps, b):
    """The sum over all paths."""
    total = 0.0
    for path in np.ndindex(*[2] * len(b)):
        p = start[path[0]] * b[0, path[0]]
        for t in range(1, len(b)):
            p = p * steps[path[t - 1], path[t]] * b[t, path[t]]
        total = total + p
    return total


def test_recursions_of_hidden_markov_models_are_sums_over_paths():
    first = plaingrad.grad(lambda s, a, b: np.log(likelihood(s, a, b)), argnums=(0, 1, 2))(START, STEPS, B)
    for f in (
        lambda s, a, b: models.forward_log(None, s, a, np.log(b))[0],
        lambda s, a, b: models.forward_scaling(None, s, a, b)[0],
        lambda s, a, b: np.log((s * b[0] * np.exp(models.backward_log(None, s, a, np.log(b))[0])).sum()),
    ):
        assert abs(f(START, STEPS, B) - np.log(likelihood(START, STEPS, B))) < 1e-12
        for slope, expected in zip(plaingrad.grad(f, argnums=(0, 1, 2))(START, STEPS, B), first, strict=True):
            np.testing.assert_allclose(slope, expected, rtol=1e-11)


def test_states_that_nothing_leads_to_have_no_slope():
    start, steps = np.array([1.0, 0.0]), np.eye(2)
    slope = plaingrad.grad(lambda b: models.forward_log(None, start, steps, np.log(b))[0])(B)
    np.testing.assert_allclose(slope, np.stack([1 / B[:, 0], np.zeros(3)], axis=1))


def test_the_distance_after_the_best_rotation():
    ref = np.array([[0.0, 0.1, 0.2], [1.0, 0.3, -0.5], [0.2, 2.0, 0.3], [-0.4, 0.6, 1.1]])
    conf = ref[:, [1, 2, 0]] + np.array(
        [[0.1, 0.0, 0.2], [0.0, -0.1, 0.1], [0.2, 0.1, 0.0], [-0.1, 0.0, 0.1]]
    )

    def f(conf, ref=ref):
        return mdanalysis.CalcRMSDRotationalMatrix(None, ref - ref.mean(0), conf - conf.mean(0), 4)

    turned = ref @ np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert abs(f(turned)) < 1e-7
    assert f(ref * [1.0, 1.0, -1.0]) > 0.1  # a reflection is no rotation
    check_grads(f, (conf,))
    with pytest.raises(MissingRuleError, match="writes the rotation"):
        mdanalysis.CalcRMSDRotationalMatrix(None, ref, conf, 4, np.zeros(9))


def test_a_formula_that_is_not_the_value_is_refused():
    def cube(x):
        return x * x * x

    rule = by_formula(cube, lambda value, x: x * x)
    assert rule.definition is not None
    assert rule.definition(1.0) == 1.0
    for x in (2.0, np.array([1.0, 2.0])):
        with pytest.raises(MissingRuleError, match="not that of the formula"):
            rule.definition(x)
    undefined = by_formula(cube, lambda value, x: x * np.nan)
    assert undefined.definition is not None
    with pytest.raises(MissingRuleError, match="not that of the formula"):
        undefined.definition(2.0)


@pytest.mark.parametrize("from_zero", [True, False])
def test_present_values(from_zero):
    pyxirr = pytest.importorskip("pyxirr")
    amounts = [-100.0, 39.0, 59.0, 55.0, 20.0]
    k = np.arange(5) + (0 if from_zero else 1)
    slope = plaingrad.grad(lambda r: pyxirr.npv(r, amounts, start_from_zero=from_zero))(0.08)
    np.testing.assert_allclose(slope, -(k * amounts / 1.08 ** (k + 1)).sum())
    second = plaingrad.derivative(lambda r: pyxirr.npv(r, amounts, start_from_zero=from_zero), order=2)(0.08)
    np.testing.assert_allclose(second, (k * (k + 1) * amounts / 1.08 ** (k + 2)).sum())


def test_the_rate_of_return_is_the_inverse_of_the_present_value():
    pyxirr = pytest.importorskip("pyxirr")

    def f(x):
        return pyxirr.irr([-100.0, 39.0, x * x, 55.0])

    x, h = 7.0, 1e-4
    r = f(x)
    k, a = np.arange(4), np.array([-100.0, 39.0, x * x, 55.0])
    np.testing.assert_allclose(
        plaingrad.grad(f)(x), 2 * x / (1 + r) ** 2 / (k * a / (1 + r) ** (k + 1)).sum(), rtol=1e-9
    )
    by_steps = (plaingrad.grad(f)(x + h) - plaingrad.grad(f)(x - h)) / (2 * h)
    np.testing.assert_allclose(plaingrad.grad(plaingrad.grad(f))(x), by_steps, rtol=1e-5)


def test_optimal_transport_is_known_by_its_costs():
    ot = pytest.importorskip("ot")
    costs = np.array([[0.1, 0.5], [0.9, 0.4]])
    a, b = np.array([0.5, 0.5]), np.array([0.4, 0.6])
    slope = plaingrad.grad(lambda m: ot.emd2(a, b, m))(costs)
    np.testing.assert_allclose(slope, ot.emd(a, b, costs), atol=1e-12)
    with pytest.raises(MissingRuleError):
        plaingrad.grad(lambda a: ot.emd2(a / a.sum(), b, costs))(a)


def test_curves():
    bezier = pytest.importorskip("bezier")
    nodes = np.array([[0.0, 0.5, 1.0], [0.0, 1.0, 0.0]])
    check_grads(lambda n: (bezier.Curve.from_nodes(n).evaluate(0.3) ** 2).sum(), (nodes,))
    check_grads(lambda n: bezier.Curve.from_nodes(n).length, (nodes,))


def test_curves_of_models_that_are_compiled():
    compiled = pytest.importorskip("hmmlearn._hmmc")

    def f(b):
        _, forward, scaling = compiled.forward_scaling(START, STEPS, b)
        backward = compiled.backward_scaling(START, STEPS, b, scaling)
        return (forward * backward * np.arange(6.0).reshape(3, 2)).sum()

    check_grads(f, (B,))


def test_scores_of_ensembles():
    properscoring = pytest.importorskip("properscoring")
    x = np.array([[0.3, 1.2, 0.1], [0.9, 0.2, 1.4]])
    check_grads(lambda x, y: properscoring.crps_ensemble(y, x).sum(), (x, np.array([0.4, 1.0])))


def squared(x):
    return x * x


def itself(x):
    return squared


def sometimes(x):
    return squared if x else itself


def another(x):
    return lambda x: x + 1


def test_an_overload_that_is_the_function_itself_is_known():
    meaning = pytest.importorskip("plaingrad.native.frontend.meaning", exc_type=ImportError)
    assert meaning.returns_only(itself, squared)
    assert not meaning.returns_only(itself, itself)
    assert not meaning.returns_only(sometimes, squared)
    assert not meaning.returns_only(another, squared)
