"""Derived programs as text and as Python: shown stage by stage, and run uncompiled."""

import inspect
import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import plaingrad

numba = pytest.importorskip("numba")

from numba import types  # noqa: E402

from plaingrad.native.compile import build  # noqa: E402

HERE = os.pathsep.join((str(Path(plaingrad.__file__).parents[1]), os.environ.get("PYTHONPATH", "")))


def loop(x, n):
    s = x
    for _ in range(n):
        s = s * math.sin(s)
    return s


def mean_of_squares(a):
    total = 0.0
    for i in range(a.size):
        total += a[i] * a[i]
    return total / a.size


def loop_derivative(x, n):
    """(s, ds/dx) of `loop`, by hand."""
    s, slope = x, 1.0
    for _ in range(n):
        s, slope = s * math.sin(s), slope * (math.sin(s) + s * math.cos(s))
    return s, slope


def line_of(f, text):
    """The number of the line of `f` that contains `text`."""
    lines, first = inspect.getsourcelines(f)
    return first + next(k for k, line in enumerate(lines) if text in line)


def test_a_numba_function_is_shown_stage_by_stage_with_the_lines_of_the_user(capsys):
    text = plaingrad.show(numba.njit(loop), 0.5, 3)
    assert capsys.readouterr().out == text + "\n"
    typed, structured, tangents, forward, backward = text.split("\ndef ")
    assert "#     s: float64 = x" in typed
    assert f"# line {line_of(loop, 'for _')}" in typed
    assert structured.startswith("loop(x, n):")
    assert tangents.startswith("loop_pushforward(x, n")
    assert forward.startswith("loop_forward(arena")
    assert backward.startswith("loop_backward(arena")
    for stage in (structured, tangents, forward, backward):
        assert f"# line {line_of(loop, 'for _')}" in stage
    for stage in (structured, tangents, forward):
        assert f"# line {line_of(loop, 's * math.sin')}" in stage
    assert "tape" not in tangents
    assert "tape" in forward
    assert "tape" in backward


def test_what_is_shown_is_python():
    text = plaingrad.show(loop, 0.5, 3, tier="native")
    compile(text, "shown", "exec")


def test_a_plain_function_is_shown_as_bytecode_unless_the_native_tier_is_asked_for():
    assert plaingrad.show(loop) == plaingrad.show(loop, 0.5, 3)
    assert "loop_backward" not in plaingrad.show(loop)
    assert "loop_backward" in plaingrad.show(loop, 0.5, 3, tier="native")
    assert plaingrad.show(numba.njit(loop), 0.5, 3, tier="plain") == plaingrad.show(loop)


def test_the_native_stages_need_arguments():
    with pytest.raises(plaingrad.ArgumentError, match="arguments"):
        plaingrad.show(loop, tier="native")


def test_what_has_no_native_derivative_is_not_shown_but_refused():
    with pytest.raises(plaingrad.NativeError):
        plaingrad.show(lambda x: {"a": x}["a"] * len(str(x)), 1.0, tier="native")


def test_derived_programs_run_uncompiled():
    value, slope = loop_derivative(0.7, 3)
    found = build.derived("pullback", loop, (types.float64, types.int64), (0,))
    assert found.python(0.7, 3, 1.0) == pytest.approx((value, slope), rel=1e-14)
    found = build.derived("pushforward", loop, (types.float64, types.int64), (0,))
    assert found.python(0.7, 3, 2.0) == pytest.approx((value, 2.0 * slope), rel=1e-14)


def test_derived_programs_of_arrays_run_uncompiled():
    a = np.array([1.0, -2.0, 4.0])
    found = build.derived("pullback", mean_of_squares, (numba.typeof(a),), (0,))
    a_bar = np.zeros(3)
    assert found.python(a, 1.0, a_bar)[0] == 7.0
    np.testing.assert_allclose(a_bar, 2.0 * a / 3.0, rtol=1e-15)


def test_a_derived_program_steps_in_a_debugger_with_its_source_lines():
    found = build.derived("pullback", loop, (types.float64, types.int64), (0,))
    for sweep in (found.run.forward, found.run.backward):
        source = inspect.getsource(sweep.py_func)
        assert source in found.text
        assert source.startswith(f"def {sweep.py_func.__name__}(")


def test_the_native_tier_runs_where_numba_is_told_not_to_compile():
    program = textwrap.dedent(
        """
        import math
        import numba
        import plaingrad

        def loop(x, n):
            s = x
            for _ in range(n):
                s = s * math.sin(s)
            return s

        @numba.njit
        def twice(x):
            return 2.0 * loop(x, 3)

        @numba.njit
        def power(x, n):
            return x if n == 1 else x * power(x, n - 1)

        y, pullback = plaingrad.vjp(twice, 0.7, tier="native")
        print(
            plaingrad.grad(loop, tier="native")(0.7, 3),
            0.5 * plaingrad.grad(twice, tier="native")(0.7),
            0.5 * pullback(1.0)[0],
            0.5 * plaingrad.jvp(twice, (0.7,), (1.0,), tier="native")[1],
            plaingrad.grad(power, tier="native")(0.7, 3),
        )
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": HERE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    slope = loop_derivative(0.7, 3)[1]
    wanted = [slope, slope, slope, slope, 3 * 0.7**2]
    assert [float(x) for x in done.stdout.split()] == pytest.approx(wanted, rel=1e-14)
