"""Every rule in the rulebook passes `check_rule` at its samples; a rule without samples fails by name.

`make test` tries the first sample of each rule and one in twelve of the others, of the rules that only move references
or have no tangent one in three; second derivatives of one rule in three, of the functions of arrays in
tests/rules/test_forward_through_the_engine.py only; and second derivatives, chunks and values used twice of one in
sixteen of the rules that only move references or have no tangent. All with PLAINGRAD_TEST_ALL=1. First derivatives at
every sample are compared with differences in tests/rules/numpy and tests/rules/test_forward_halves.py, second ones of
rows in tests/rules/test_elementwise_twice.py.
"""

import os

import numpy as np
import pytest
from tests.rules import moving_samples
from tests.rules.samples import REFUSING, is_of_scipy, samples_of
from tests.rules.test_forward_through_the_engine import TWICE
from tests.sampling import ALL, is_in_sample, sample_of

import plaingrad
from plaingrad import rulebook
from plaingrad.testing import check_rule

pytestmark = pytest.mark.filterwarnings("ignore")  # NumPy's own: empty slices, deprecated forms

HERE = os.path.dirname(plaingrad.__file__)
RULES = [
    rule
    for rule in rulebook.rules()
    if (rule.source.startswith(HERE) or not rule.source) and not is_of_scipy(rule)  # those: tests/rules/scipy
]
DIFFERENTIATING = [rule for rule in RULES if rule.kind in ("scalar", "linear", "bilinear", "full", "composed")]


def name_of(rule):
    f = rule.function
    owner = getattr(getattr(f, "__objclass__", None), "__name__", None) or getattr(f, "__module__", "") or ""
    name = getattr(f, "__name__", None) or getattr(f, "__qualname__", "a rule")
    return f"{rule.kind}-{owner}.{name}"


def check(rule, sample, **checks):
    """check_rule at one sample; the report says which one it was."""
    try:
        check_rule(rule.function if sample.call is None else sample.call, *sample.args, **sample.options, **checks)
    except AssertionError as error:
        where = repr(sample.args)[:200].replace("\n", "")
        return f"at {where} {sample.options or ''}: {error}"
    return ""


@pytest.mark.parametrize("rule", [r for r in DIFFERENTIATING if r.function not in REFUSING], ids=name_of)
def test_a_rule_keeps_every_promise(rule):
    samples = samples_of(rule)
    assert samples, f"the rule for {rule.name} ({rule.source}) has no samples: add some to tests/rules/samples.py"
    chosen = sample_of(samples, name_of(rule), 12)
    is_tried_twice = is_in_sample(name_of(rule), 3) and (ALL or rule.function not in TWICE)
    wrong = [words for sample in chosen if (words := check(rule, sample, second_order=is_tried_twice))]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.mark.parametrize("function", REFUSING, ids=lambda f: f.__name__)
def test_a_rule_that_refuses_says_so(function):
    with pytest.raises(plaingrad.errors.MissingRuleError):
        plaingrad.vjp(REFUSING[function], np.array([0.2, 0.3, 0.5]))



MOVING = [rule for rule in RULES if rule.kind in ("mover", "inspector", "higher_order", "no_tangent")]


@pytest.mark.parametrize("rule", MOVING, ids=name_of)
def test_what_only_moves_references_or_has_no_tangent_passes_derivatives_on_or_ends_them(rule):
    if moving_samples.is_never_called(rule):
        return
    samples = moving_samples.samples_of(rule)
    assert samples, f"the rule for {rule.name} ({rule.source}) has no samples: add some to tests/rules/moving_samples.py"
    left_out = () if is_in_sample(name_of(rule), 16) else ("second_order", "chunks", "accumulation")
    chosen = sample_of(samples, name_of(rule), 3)
    wrong = [words for sample in chosen if (words := check(rule, sample, **dict.fromkeys(left_out, False)))]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
