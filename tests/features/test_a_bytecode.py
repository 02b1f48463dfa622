"""Section A of the features: differentiation of bytecode (Nabla), a test a row."""

from __future__ import annotations

import cmath
import dataclasses
import math
import operator
import py_compile
import statistics
import sys
from pathlib import Path

import numpy as np
import pytest

import plaingrad
from plaingrad import derivative, grad, value_and_grad

DOCS = Path(__file__).parents[2] / "docs"


def test_a1_source_is_never_needed(tmp_path, monkeypatch):
    names = {"math": math}
    exec("def f(x):\n    return x * math.exp(x)", names)
    assert math.isclose(grad(names["f"])(0.5), 1.5 * math.exp(0.5))
    assert grad(eval("lambda x: x ** 3"))(2.0) == 12.0

    package = tmp_path / "only_compiled"
    package.mkdir()
    source = package / "source.py"
    source.write_text("def area(r):\n    return 3.0 * r * r\n")
    py_compile.compile(str(source), cfile=str(package / "__init__.pyc"))
    source.unlink()
    monkeypatch.syspath_prepend(str(tmp_path))
    module = __import__("only_compiled")
    monkeypatch.delitem(sys.modules, "only_compiled")
    assert grad(module.area)(2.0) == 12.0

    @dataclasses.dataclass
    class Ray:  # its __init__ is generated
        x: float
        y: float = 2.0

    assert grad(lambda x: Ray(x).x * Ray(x, x).y)(3.0) == 6.0


def test_a2_control_flow_is_untouched_and_values_are_those_of_a_plain_call():
    def f(x):
        total = 0.0
        for k in range(7):
            while total < k and x > 0:
                total += math.sin(x) / 3.0 + 0.1
            try:
                total *= 1.0 if k != 3 else 1 / 0
            except ZeroDivisionError:
                total += x / 7.0
        return total

    x = 0.7234
    y, slope = value_and_grad(f)(x)
    assert y == f(x)  # every bit
    h = 1e-6
    assert math.isclose(slope, (f(x + h) - f(x - h)) / (2 * h), rel_tol=1e-8)


def test_a3_what_does_not_depend_on_the_input_is_not_recorded():
    def f(x, n):
        other = 1.0
        for _ in range(n):
            other = other * 1.01 + 0.001
        return x * other

    def size(n):
        return plaingrad.tape_size(f, 3.0, n)

    few, many = size(10), size(1000)
    assert str(few) == str(many)


def test_a4_user_code_never_meets_a_wrapper():
    seen = []

    def f(x, a):
        y = x * 2.0 + a[0]
        seen.append((type(x), type(y), type(a), type(a[0])))
        return y * (a * a).sum()

    f(1.5, np.ones(2))
    for derived in (grad(f), grad(grad(f)), lambda x, a: plaingrad.jvp(f, (x, a), (1.0, a))):
        derived(1.5, np.ones(2))
    assert set(seen) == {(float, np.float64, np.ndarray, np.float64)}
    assert plaingrad.jvp(lambda x: x * x, (3.0,), (1.0,)) == (9.0, 6.0)  # the pair, at the exit


FUNCTIONS = {
    "math": [
        (math.sin, math.cos(0.7)), (math.atan, 1 / 1.49), (math.cosh, math.sinh(0.7)), (math.log1p, 1 / 1.7),
        (math.erf, 2 / math.sqrt(math.pi) * math.exp(-0.49)), (math.sqrt, 0.5 / math.sqrt(0.7)),
    ],
    "numpy": [(np.tanh, 1 - math.tanh(0.7) ** 2), (np.expm1, math.exp(0.7)), (np.reciprocal, -1 / 0.49)],
    "operator": [(operator.neg, -1.0), (lambda x: operator.pow(x, 3), 3 * 0.49), (lambda x: operator.truediv(1.0, x), -1 / 0.49)],
    "cmath": [(lambda x: cmath.exp(1j * x).real, -math.sin(0.7)), (lambda x: abs(complex(x, 1.0)), 0.7 / math.hypot(0.7, 1))],
    "statistics": [(lambda x: statistics.mean([x, 2.0, 3 * x]), 4 / 3), (lambda x: statistics.pvariance([x, 1.7]), -0.5)],
    "conversions": [(lambda x: float(x) * x, 1.4), (lambda x: round(x) * x, 1.0), (lambda x: int(x) + x, 1.0)],
}  # fmt: skip


@pytest.mark.parametrize("of", FUNCTIONS)
def test_a5_functions_operators_and_conversions(of):
    for f, expected in FUNCTIONS[of]:
        assert math.isclose(grad(lambda x, f=f: f(x) * 1.0)(0.7), expected, rel_tol=1e-12)


def test_a5_storage_in_locals_parameters_instances_and_classes():
    class Store:
        shared = 1.0

        def __init__(self, own):
            self.own = own

    def f(x, *rest, scale=2.0):
        store = Store(x * scale)
        Store.shared = store.own * x
        y = z = Store.shared
        del y
        return z + rest[0] * x

    assert grad(f)(3.0, 5.0) == 2 * 2.0 * 3.0 + 5.0


def test_a6_functions_that_call_others_to_any_depth():
    class Scale:
        def __init__(self, by):
            self.by = by

        def __call__(self, x):
            return self.by * x

    def tower(x, n):
        return Scale(1.01)(tower(x, n - 1)) if n else x

    assert math.isclose(grad(tower)(2.0, 200), 1.01**200, rel_tol=1e-12)


SINGULAR = [
    (abs, 0.0, 0.0), (lambda x: max(x, 0.0), 0.0, 1.0), (lambda x: x**0, 0.0, 0.0), (math.sqrt, 0.0, math.inf),
    (lambda x: np.max(np.array([x, x, 0.0])), 1.0, 1.0), (lambda x: 0.0 * x + abs(x) ** 1.5, 0.0, 0.0),
]  # fmt: skip


def test_a7_singular_points_are_decided():
    assert [grad(f)(x) for f, x, _ in SINGULAR] == [expected for _, _, expected in SINGULAR]
    page = (DOCS / "explanation" / "singular-points.md").read_text()
    assert "abs" in page and "max" in page


def test_a8_what_the_manual_of_nabla_left_to_be_done_is_in_the_pages():
    explanation = DOCS / "explanation"
    followed = (explanation / "one-function.md").read_text()
    assert "LOAD_FAST" in followed or "RESUME" in followed  # the machine's stack and locals, step by step
    assert "hook" in (explanation / "rewrite.md").read_text()  # what is changed on the path of the data
    assert "tier=\"native\"" in (explanation / "map.md").read_text()  # one function through both tiers
    assert plaingrad.rules(math.sin)[0].kind == "scalar" and (DOCS / "rule_table.py").exists()


def test_a8_the_derivative_of_a_derivative_is_one_too():
    assert derivative(lambda x: x**5, order=3)(1.0) == 60.0
