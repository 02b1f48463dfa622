"""Public functions of SciPy, called with realistic arguments: no derivative is wrong, and nothing but a refusal stops one.

`make test` tries a stated sample; with PLAINGRAD_TEST_ALL=1 all are tried.
"""

import pytest
from tests.sampling import is_in_sample

scipy = pytest.importorskip("scipy")
from tests.scipy.sweep import harness, tables  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
PART = {
    "scipy.stats": 50,
    "scipy.special": 16,
    "scipy.optimize": 24,
    "scipy.integrate": 24,
}  # one in so many is tried; of others one in 10
VARIANTS = {
    case.id for table in tables.all_of(["variants_arrays", "variants_numbers"]) for case in table.cases
}
CASES = [case for table in tables.all_of() for case in table.cases if not case.late]
TRIED = {
    case.id: case
    for case in CASES
    if is_in_sample(case.id, 60 if case.id in VARIANTS else PART.get(".".join(case.name.split(".")[:2]), 10))
}


# Known to be nan where differences have a number.
NAN_YET = {"scipy.stats.chi2_contingency"}
if tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 14):  # it sums nan where newer ones leave them out
    NAN_YET.add("scipy.stats.circmean[omit]")


@pytest.mark.parametrize("name", TRIED)
def test_no_derivative_is_wrong(name):
    found = harness.run(TRIED[name])
    bad = harness.BAD[1:] if name in NAN_YET else harness.BAD
    bad = {key: found.words.get(key) for key, verdict in found.verdicts.items() if verdict in bad}
    assert not bad


def test_every_case_is_of_another_name():
    ids = [case.id for case in CASES]
    assert len(ids) == len(set(ids))


def test_a_wrong_derivative_is_seen():
    """The sweep itself: stop_gradient makes derivatives wrong, a refusal and a crash are what they are."""
    import numpy as np

    import plaingrad

    def verdict(call):
        case = harness.Case("case", "", call, np.array([0.3, 0.7]), ("strided", "float32", "complex"))
        return harness.run(case).worst

    assert verdict(lambda x: np.sin(x) * x) == harness.RIGHT
    assert verdict(lambda x: plaingrad.stop_gradient(np.sin(x)) * x) == harness.WRONG
    assert verdict(lambda x: np.sin(x) + np.sqrt(0.0 * x)) == harness.NAN
    assert verdict(lambda x: np.frombuffer(x.real.copy().tobytes())) == harness.REFUSED
    assert verdict(lambda x: x if plaingrad_is_off() else 1 / 0) == harness.RAISES


def plaingrad_is_off():
    return False
