"""Every rule for scipy.special keeps every promise of `check_rule`, at its sample points.

`make test` tries one rule in ten, with one sample for its numbers and one for its arrays; all with PLAINGRAD_TEST_ALL=1.
"""

import types

import numpy as np
import pytest
from tests.rules.agreement import difference
from tests.sampling import ALL, is_in_sample

scipy_special = pytest.importorskip("scipy.special")

import plaingrad  # noqa: E402
from plaingrad import rulebook  # noqa: E402
from plaingrad.rules.scipy import forms, special  # noqa: E402
from plaingrad.testing import check_rule  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
assert special and [*rulebook.rules()]  # they are in force

RULES = [rule for rule in forms.gathered() if rule.kind in ("scalar", "full") and rule.domain]
# SciPy computes these to some seven digits only, so that differences of them say less than that; their slopes are
# compared with mpmath in test_special_accuracy, or are the functions that they integrate.
ROUGH = {"itairy", "stdtridf", "ncfdtridfn", "ncfdtridfd", "ncfdtrinc", "nctdtridf", "nctdtrinc", "chndtridf", "chndtrinc", "btdtria", "btdtrib",
         "fdtridfd", "gdtria", "gdtrib", "gdtrix", "bdtrik", "bdtrin", "nbdtrik", "nbdtrin", "pdtrik", "chdtriv", "chndtrix", "ncfdtri", "nctdtrit",
         "it2struve0", "itstruve0", "itmodstruve0", "it2j0y0", "it2i0k0", "iti0k0", "itj0y0", "besselpoly",
         "stdtrit", "_smirnovci", "smirnovi", "kolmogi", "_kolmogci"}  # fmt: skip
# Their second derivatives are refused: in a parameter, or where nobody has written them.
ONCE = {"mathieu_a", "mathieu_b", "_landau_cdf", "_landau_sf", "_landau_ppf", "_landau_isf"}


def name_of(rule):
    return getattr(rule.function, "__name__", "?")


def moving(rule, point):
    """The arguments that are differentiated: real numbers whose slopes are known."""
    results = forms.RESULTS.get(id(rule.function)) or (rule.partials or (1,) * len(point),)
    known = [all(result[k] is not None and result[k] not in forms.UNKNOWN for result in results) for k in range(len(point))]
    return tuple([k for k, x in enumerate(point) if type(x) is float and known[k]])


def refuses(rule):
    """Whether one of the slopes is refused."""
    results = forms.RESULTS.get(id(rule.function)) or (rule.partials,)
    return any(partial in forms.UNKNOWN for result in results for partial in result or ())


def samples(rule):
    """Arguments: numbers; then arrays that are broadcast, in single precision, without axes, and empty."""
    points = list(zip(*rule.domain))
    ours = isinstance(rule.function, types.FunctionType)
    numbers = [point for point in points if moving(rule, point)]
    arrays = []
    if not ours and numbers:
        columns = [np.array(column) for column in zip(*numbers)]
        if columns[0].size > 1 and name_of(rule) not in ROUGH:
            wide = [c.reshape([-1] + [1] * (len(columns) - 1 - n)) if n < 2 else c[0] for n, c in enumerate(columns)]
            arrays.append(wide)
        arrays.append([c.astype(np.float32) if c.dtype.kind == "f" else c for c in columns])
        arrays.append([np.array(c[0]) for c in columns])
        arrays.append([c[:0] for c in columns])
    return numbers, arrays


def wrong(rule, args, argnums, rtol, twice):
    try:
        check_rule(rule.function, *args, argnums=argnums, rtol=rtol, second_order=twice)
    except AssertionError as error:
        return f"at {args}: {error}"
    return ""


@pytest.mark.parametrize("rule", [rule for rule in RULES if is_in_sample(name_of(rule), 10) and not refuses(rule)], ids=name_of)
def test_a_rule_of_scipy_special_keeps_every_promise(rule):
    numbers, arrays = samples(rule)
    rough = name_of(rule) in ROUGH
    twice = name_of(rule) not in ONCE and not rough
    found = []
    for args in [*(numbers if ALL else numbers[:1]), *(arrays if ALL else arrays[:1])]:
        argnums = moving(rule, [float(x) if np.asarray(x).dtype.kind == "f" and not np.size(x) == 0 and np.ndim(x) == 0 else (1.0 if np.asarray(x).dtype.kind == "f" else 1) for x in args])
        single = any(getattr(x, "dtype", None) == np.float32 for x in args)
        found.append(wrong(rule, args, argnums, 1e-3 if rough or single else 1e-6, twice and not single))
    found = [words for words in found if words]
    if found:
        pytest.fail("\n".join(found), pytrace=False)


@pytest.mark.parametrize("rule", [rule for rule in RULES if is_in_sample(name_of(rule), 3) and refuses(rule)], ids=name_of)
def test_a_rule_with_a_refused_slope_is_right_in_the_other_arguments_and_names_that_one(rule):
    for point in list(zip(*rule.domain)) if ALL else [next(zip(*rule.domain))]:
        known = moving(rule, point)
        for k, x in enumerate(point):
            if type(x) is not float:
                continue

            def f(t, k=k, point=point):
                z = rule.function(*point[:k], t, *point[k + 1 :])
                return z[0] + z[1] if isinstance(z, tuple) else z

            if k not in known:
                with pytest.raises(plaingrad.errors.MissingRuleError, match=rule.function.__name__):
                    plaingrad.grad(f)(x)
                continue
            truth = difference(f, x)
            assert plaingrad.grad(f)(x) == pytest.approx(truth, rel=1e-8)
            assert plaingrad.jvp(f, (x,), (1.0,))[1] == pytest.approx(truth, rel=1e-8)
            if name_of(rule) not in ONCE:
                assert plaingrad.derivative(f, order=2)(x) == pytest.approx(difference(plaingrad.grad(f), x), rel=1e-7)


NOT_HOLOMORPHIC = {
    "jve": lambda x: scipy_special.jve(1.3, x), "yve": lambda x: scipy_special.yve(1.3, x), "ive": lambda x: scipy_special.ive(1.3, x),
    **{f"airye {k}": lambda x, k=k: scipy_special.airye(x)[k] for k in range(4)},
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_HOLOMORPHIC)
@pytest.mark.parametrize("x", [0.7 + 1.9j, 2.3 - 0.4j, -1.2 + 0.8j])
def test_scaled_functions_of_complex_numbers_in_both_directions(name, x):
    f = NOT_HOLOMORPHIC[name]
    for direction in (1.0, 1j):
        truth = difference(lambda t: f(x + t * direction), 0.0, h=2.0**-7)
        assert plaingrad.jvp(f, (x,), (direction + 0j,))[1] == pytest.approx(truth, rel=1e-9)
        for z_bar in (1.0 + 0j, 1j):
            (x_bar,) = plaingrad.vjp(f, x)[1](z_bar)
            assert np.real(np.conj(x_bar) * direction) == pytest.approx(np.real(np.conj(z_bar) * truth), rel=1e-8, abs=1e-9)


def test_a_result_that_is_nan_and_not_used_adds_nothing():
    x = np.array([-1.0, 2.0])
    assert np.isnan(scipy_special.airye(x)[0][0])
    slope = plaingrad.grad(lambda x: np.sum(scipy_special.airye(x)[2]))(x)
    assert slope == pytest.approx([float(difference(lambda t: scipy_special.airye(t)[2], v)) for v in x], rel=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["psi", "gamma", "logit", "exp1", "ellipk", "entr", "y0", "gammaln", "ndtri"])
def test_slopes_at_poles_and_outside_give_no_warnings(name):
    f = getattr(scipy_special, name)
    for x in (0.0, -1.0, 1.0, 2.0, np.inf, np.nan):
        plaingrad.grad(f)(x)
        plaingrad.jvp(f, (np.array([x]),), (np.ones(1),))


def test_rules_are_in_force_whichever_function_is_met_first():
    assert rulebook.find(scipy_special.gamma) is not None
    assert plaingrad.grad(scipy_special.gamma)(1.0) == pytest.approx(-np.euler_gamma)
