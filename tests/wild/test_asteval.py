"""asteval: an interpreter of Python written in Python; the gradient of a program that it runs."""

import warnings

import pytest

import plaingrad

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    asteval = pytest.importorskip("asteval")

PROGRAM = """
def smooth(u, steps):
    total = 0.0
    for k in range(steps):
        if k % 2 == 0:
            total += sin(u * k)
        else:
            total -= u ** 2 / k
    return total

values = [smooth(x, n) for n in (2, 5)]
result = values[0] * values[1] + exp(-x)
"""


def test_an_interpreted_expression():
    def f(x):
        interpreter = asteval.Interpreter(usersyms={"x": x}, use_numpy=False)
        return interpreter("x**3 + 2*x")

    assert plaingrad.grad(f)(2.0) == pytest.approx(14.0)


def test_an_interpreted_program(agrees):
    def f(x):
        interpreter = asteval.Interpreter(usersyms={"x": x}, use_numpy=False)
        interpreter(PROGRAM)
        return interpreter.symtable["result"]

    agrees(f, 0.7)
