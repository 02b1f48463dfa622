"""Rules and functions of the examples in README.md and docs/ keep every promise; a rule without samples fails by name."""

import contextlib
import io
import re

import numpy as np
import pytest
from tests.docs.test_examples import PAGES, ROOT, blocks_of, run_python

from plaingrad import rulebook
from plaingrad.testing import check_rule

V = np.array([0.3, -1.2, 2.0])
APPROXIMATE = {"differences": False, "second_order": False}  # on purpose: clipped, straight-through, ...

# By the name of the function: arguments, and what is to be left out of the check.
SAMPLES = {
    "softplus": [(0.7,), (-2.0,)],
    "every_other": [(V,)],
    "project_to_ball": [(np.array([3.0, 4.0]), 2.0), (np.array([0.3, 0.4]), 2.0)],
    "checksum": [(2.5,)],
    "key": [(2.5,)],
    "erf": [(0.3,)],
    "cosine": [(0.5,)],
    "softclip": [(V, 2.0)],
    "log_cosh": [(0.7,), (-2.0,)],
    "rounded": [(V, APPROXIMATE)],
    "reversed_gradient": [(V, APPROXIMATE)],
    "kepler": [(0.7, 0.3)],
    "softmax": [(np.array([[0.3, -1.2], [0.5, 2.0]]),)],
    "sinc": [(1.5,), (0.04,)],
    "quotient": [(3.0, 2.0)],
    "area": [(3.0, 2.0), (np.array([2.0, 5.0]), 2.0)],
    "into_lower": [(np.zeros((2, 2)), V)],
    "matmul_into": [(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.5, 2.0], [-1.0, 1.0]]), np.zeros((2, 2)))],
    "slow_norm": [(np.array([3.0, 4.0]),)],
    "residual_is_small": [(1e-12, 1e-8)],
    "cube": [(1.5,)],
    "response": [(2.0,), (-0.7,)],
    "clipped": [(0.5, APPROXIMATE)],
}

# Samples that are made of what the page defines.
MADE = {
    "foo_mul": lambda page: [(page["foo"], page["b"])],
    "period": lambda page: [(page["Pendulum"](2.0), 9.81)],
    "root": lambda page: [(lambda x: x * x - 2.0, 1.0)],
}

WRONG = {"cube": "must return a tuple"}  # on purpose, and what the report says

# Functions of the pages that have no rule.
FUNCTIONS = {
    "check-in-tests.md": {"energy": [(np.array([[0.0, 0.1], [1.0, 2.0], [-1.0, 0.5]]),)]},
    "wrong-gradient.md": {"decay": [(0.7, [1.0, 2.0])], "signal": [(2.0, 0.5)]},
    "missing-rule.md": {"horner": [([2.0, 0.0, 1.0], 3.0)]},
}


def may_enter_rules(page):
    """Whether an example of the page speaks of rules, or has functions to check; others run in test_examples.py only."""
    text = "".join(block.text for block in blocks_of(page) if block.language == "python")
    return page.name in FUNCTIONS or re.search("rule|nondifferentiable", text) is not None


def check(function, samples):
    for *args, options in [sample if isinstance(sample[-1], dict) and sample[-1] is APPROXIMATE else (*sample, {}) for sample in samples]:
        check_rule(function, *args, **options)


@pytest.mark.parametrize("page", list(filter(may_enter_rules, PAGES)), ids=lambda page: str(page.relative_to(ROOT)))
def test_what_the_page_defines_keeps_every_promise(page, tmp_path, monkeypatch):
    if "import numba" in page.read_text(encoding="utf-8"):
        pytest.importorskip("numba")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    before = {id(rule): rule for rule in rulebook.rules()}
    entered = []
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for block in blocks_of(page):
                if block.language == "python":
                    name = re.match(r"# (\w+\.py)\n", block.text)
                    if name:
                        (tmp_path / name[1]).write_text(block.text, encoding="utf-8")
                    run_python(block, page, namespace)
        entered = [rule for rule in rulebook.rules() if id(rule) not in before]
        for rule in entered:
            name = getattr(rule.function, "__name__", None) or repr(rule.function)
            if not rule.users:
                continue  # what plaingrad makes of a rule that writes
            samples = MADE[name](namespace) if name in MADE else SAMPLES.get(name)
            assert samples, f"{page.name} enters a rule for {name}: add samples to {__file__}"
            if name in WRONG:
                with pytest.raises(AssertionError, match=WRONG[name]):
                    check(rule.function, samples)
            else:
                check(rule.function, samples)
        for name, samples in FUNCTIONS.get(page.name, {}).items():
            check(namespace[name], samples)
    finally:
        for rule in entered:
            rulebook.remove(rule.function)
        for rule in before.values():
            if rulebook.find(rule.function) is None:
                rulebook.add(rule)

