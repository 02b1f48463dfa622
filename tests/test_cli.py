"""The command line as a user meets it: what is printed, where, and the exit status."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import plaingrad
from plaingrad.cli import main
from plaingrad.cli.command import READER_GONE
from plaingrad.testing.slopes import compare

MODEL = """\
import math
import numpy as np
import ctypes

def area(width, height):
    return width * height

def loss(rate, start, scale=1.0, *, power=2.0):
    return scale * rate**power * sum(s * s for s in start)

def nested(point):
    return point["a"] * point["b"][0] + point["b"][1] ** 2

def first(x, /, y):
    return x * x * y

def total(*terms):
    return sum(t * t for t in terms)

def quadratic(x):
    return x @ x

def repeated(x, n):
    for _ in range(n):
        x = math.sin(x)
    return x

def kink(x):
    return abs(x)

def wrong(x):
    import plaingrad
    return plaingrad.stop_gradient(x) * x

def digits(x):
    return ctypes.c_double(x).value

def pair(x):
    return x, x

def fails(x):
    return [x][3]

def curve(a, w):
    return {"products": [a * v for v in w], "name": "curve", "square": a * a}

def scaled(a, w):
    return a * w

def cubic(p, label):
    return p["x"] ** 2 * p["y"][0]

class Box:
    def __init__(self, x):
        self.x = x

def unused(x, label):
    return 2.0 * x

class Model:
    @staticmethod
    def cube(x):
        return x**3

seven = 7
"""


@pytest.fixture(autouse=True)
def in_a_folder_with_a_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "model.py").write_text(MODEL)


def run(capsys, *argv):
    status = main(argv)
    out, err = capsys.readouterr()
    return status, out, err


def refused(capsys, *argv):
    """The single line that a wrong command prints."""
    status, out, err = run(capsys, *argv)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert err.startswith("plaingrad: ")
    return err


# --- grad ---


def test_grad_prints_one_entry_for_each_argument_of_a_list(capsys):
    assert run(capsys, "grad", "model.py:area", "--at", "[3.0, 4.0]") == (0, "[4.0, 3.0]\n", "")


def test_grad_prints_an_object_when_arguments_are_named(capsys):
    status, out, _ = run(capsys, "grad", "model.py:area", "--at", '{"height": 4.0, "width": 3.0}')
    assert status == 0
    assert json.loads(out) == {"height": 3.0, "width": 4.0}


def test_grad_mirrors_nested_structures(capsys):
    status, out, _ = run(capsys, "grad", "model.py:nested", "--at", '[{"a": 2.0, "b": [3.0, 5.0]}]')
    assert (status, json.loads(out)) == (0, [{"a": 3.0, "b": [2.0, 10.0]}])


def test_keyword_only_parameters_can_be_named(capsys):
    at = '{"rate": 2.0, "start": [1.0, 2.0], "power": 3.0}'
    _, out, _ = run(capsys, "grad", "model.py:loss", "--at", at)
    gradient = json.loads(out)
    assert gradient["start"] == [16.0, 32.0]
    assert gradient["power"] == pytest.approx(5 * 8 * math.log(2))


def test_positional_only_parameters_can_be_named_in_any_order(capsys):
    _, out, _ = run(capsys, "grad", "model.py:first", "--at", '{"y": 5.0, "x": 3.0}')
    assert json.loads(out) == {"x": 30.0, "y": 9.0}


def test_variadic_parameters_take_the_rest_of_the_list(capsys):
    _, out, _ = run(capsys, "grad", "model.py:total", "--at", "[1.0, 2.0, 3.0]")
    assert json.loads(out) == [2.0, 4.0, 6.0]


def test_array_makes_lists_of_numbers_arrays(capsys):
    _, out, _ = run(capsys, "grad", "model.py:quadratic", "--at", "[[1, 2, 3]]", "--array")
    assert json.loads(out) == [[2.0, 4.0, 6.0]]


def test_integers_are_real_numbers(capsys):
    _, out, _ = run(capsys, "grad", "model.py:area", "--at", "[3, 4]")
    assert json.loads(out) == [4.0, 3.0]


def test_what_has_no_derivative_is_null(capsys):
    _, out, _ = run(capsys, "grad", "model.py:unused", "--at", '[1.0, "text"]')
    assert json.loads(out) == [2.0, None]


@pytest.mark.parametrize("name", ["x", "0"])
def test_wrt_leaves_the_other_arguments_alone(capsys, name):
    status, out, _ = run(capsys, "grad", "model.py:repeated", "--at", "[0.5, 2]", "--wrt", name)
    assert status == 0
    assert json.loads(out) == [pytest.approx(math.cos(math.sin(0.5)) * math.cos(0.5)), None]


def test_a_count_that_is_differentiated_is_pointed_out(capsys):
    status, _, err = run(capsys, "grad", "model.py:repeated", "--at", "[0.5, 2]")
    assert status == 1
    assert err.splitlines()[-1].endswith("leave it out with --wrt.")


def test_a_dotted_name_reaches_into_classes(capsys):
    assert run(capsys, "grad", "model.py:Model.cube", "--at", "[2.0]")[1] == "[12.0]\n"


# --- check ---


def test_check_prints_a_line_for_each_number_and_succeeds(capsys):
    status, out, _ = run(capsys, "check", "model.py:nested", "--at", '[{"a": 2.0, "b": [3.0, 5.0]}]')
    lines = out.splitlines()
    assert status == 0
    assert lines[0].split() == ["path", "ours", "difference", "rel.", "error", "verdict"]
    assert [line.split()[0] for line in lines[1:4]] == ["point['a']", "point['b'][0]", "point['b'][1]"]
    assert all(line.endswith("agrees") for line in lines[1:4])
    assert lines[4] == "3 agree"


def test_check_of_arrays_names_each_entry(capsys):
    _, out, _ = run(capsys, "check", "model.py:quadratic", "--at", "[[1, 2]]", "--array")
    assert [line.split()[0] for line in out.splitlines()[1:3]] == ["x[0]", "x[1]"]


def test_check_fails_when_the_gradient_disagrees(capsys):
    status, out, _ = run(capsys, "check", "model.py:wrong", "--at", "[3.0]")
    assert status == 1
    assert out.splitlines()[1].split() == ["x", "3", "6", "5.0e-01", "DISAGREES"]
    assert out.splitlines()[-1] == "1 DISAGREE"


def test_check_at_a_kink_accepts_a_subgradient(capsys):
    status, out, _ = run(capsys, "check", "model.py:kink", "--at", "[0.0]")
    assert status == 0
    assert "agrees" in out


# --- show ---


def test_what_stands_in_the_way_of_the_native_tier_is_printed(capsys):
    pytest.importorskip("numba")
    status, out, _ = run(capsys, "why-not-native", "model.py:area", "--at", "[3.0, 4.0]")
    assert (status, out) == (0, "Nothing stands in the way of a native derivative.\n")


def test_show_prints_the_rewritten_instructions(capsys):
    status, out, _ = run(capsys, "show", "model.py:area")
    assert status == 0
    assert "mul" in out


# --- what goes wrong ---


def test_a_refusal_is_printed_with_its_name_and_fails(capsys):
    status, out, err = run(capsys, "grad", "model.py:digits", "--at", "[1.0]")
    assert (status, out) == (1, "")
    assert err.startswith("MissingRuleError: ")
    assert "model.py" in err


def test_a_result_that_is_no_number_is_refused(capsys):
    status, _, err = run(capsys, "grad", "model.py:pair", "--at", "[1.0]")
    assert status == 1
    assert err.startswith("NonScalarOutputError: ")


def test_an_error_of_the_function_shows_its_own_traceback_only(capsys):
    status, _, err = run(capsys, "grad", "model.py:fails", "--at", "[1.0]")
    assert status == 1
    assert "return [x][3]" in err
    assert err.splitlines()[-1].startswith("IndexError: ")
    assert "command.py" not in err and "call.py" not in err


def test_a_missing_file_is_named(capsys):
    assert "no such file: nowhere.py" in refused(capsys, "grad", "nowhere.py:f", "--at", "[]")


@pytest.mark.parametrize("target", ["model.py", ":area", "model.py:", "area"])
def test_a_target_needs_a_file_and_a_name(capsys, target):
    assert "FILE.py:FUNC" in refused(capsys, "grad", target, "--at", "[]")


def test_a_missing_name_comes_with_the_nearest_one(capsys):
    assert "did you mean 'area'" in refused(capsys, "grad", "model.py:aria", "--at", "[]")


def test_a_name_that_is_no_function(capsys):
    assert "type int" in refused(capsys, "grad", "model.py:seven", "--at", "[]")


def test_a_file_that_is_not_python(capsys, tmp_path):
    (tmp_path / "data.txt").write_text("1 2 3")
    assert "not a Python file" in refused(capsys, "grad", "data.txt:f", "--at", "[]")


@pytest.mark.parametrize(
    "text, said", [("def f(:", "SyntaxError"), ("1 / 0", "ZeroDivisionError"), ("exit(3)", "SystemExit")]
)
def test_a_file_that_cannot_be_imported(capsys, tmp_path, text, said):
    (tmp_path / "broken.py").write_text(text)
    assert said in refused(capsys, "grad", "broken.py:f", "--at", "[]")


@pytest.mark.parametrize("at", ["[1.0", "", "1.0 2.0", "{'width': 1}", "3", '"text"', "null"])
def test_bad_json(capsys, at):
    assert "--at" in refused(capsys, "grad", "model.py:area", "--at", at)


@pytest.mark.parametrize(
    "at", ["[]", "[1.0]", "[1.0, 2.0, 3.0]", '{"width": 1.0}', '{"width": 1.0, "depth": 2.0}']
)
def test_arguments_that_do_not_fit_the_signature(capsys, at):
    assert "model.py:area takes (width, height)" in refused(capsys, "grad", "model.py:area", "--at", at)


def test_a_point_without_numbers(capsys):
    assert "no number" in refused(capsys, "grad", "model.py:unused", "--at", '["a", true]')


def test_wrt_an_argument_that_is_not_there(capsys):
    assert "width, height" in refused(capsys, "grad", "model.py:area", "--at", "[1.0, 2.0]", "--wrt", "depth")


def test_argparse_refuses_unknown_commands_with_the_same_status():
    with pytest.raises(SystemExit) as stopped:
        main(["differentiate"])
    assert stopped.value.code == 2


# --- as a process ---


def process(*argv):
    command = [sys.executable, "-m", "plaingrad", *argv]
    env = os.environ | {"PYTHONPATH": str(Path(plaingrad.__file__).parents[1])}  # installed or not
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)


def test_the_command_runs_as_a_module():
    done = process("grad", "model.py:area", "--at", "[3.0, 4.0]")
    assert (done.returncode, done.stdout, done.stderr) == (0, "[4.0, 3.0]\n", "")


def test_the_version_is_printed():
    done = process("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("plaingrad ")


def test_the_exit_status_reaches_the_shell():
    assert process("grad", "nowhere.py:f", "--at", "[]").returncode == 2


# --- the judge ---


def judged(f, x, ours):
    return compare(f, x, ours, "x", 1e-5).verdict


@pytest.mark.parametrize(
    "f, df, x",
    [
        (math.exp, math.exp, 3.0),
        (math.log, lambda x: 1 / x, 1e-9),
        (math.log, lambda x: 1 / x, 1e9),
        (math.sin, math.cos, 1e4),
        (lambda x: x**3, lambda x: 3 * x * x, 0.0),
        (lambda x: 7.0, lambda x: 0.0, 2.0),
        (lambda x: 1e8 + x * x, lambda x: 2 * x, 3.0),
        (lambda x: 1e-12 * x * x, lambda x: 2e-12 * x, 3.0),
    ],
)
def test_right_derivatives_agree_and_wrong_ones_do_not(f, df, x):
    assert judged(f, x, df(x)) == "agrees"
    assert judged(f, x, df(x) * 1.01 + 1.0) == "DISAGREES"


def test_a_one_sided_derivative_at_a_kink_is_one_of_the_answers():
    def ramp(x):
        return max(x, 0.0)

    assert [judged(ramp, 0.0, ours) for ours in (0.0, 0.3, 1.0)] == ["kink"] * 3
    assert judged(ramp, 0.0, 1.5) == "DISAGREES"


def test_differences_that_do_not_settle_judge_nothing():
    values = iter([0.0, 0.9, -0.4, 0.3, 0.8, -0.7, 0.1, 0.5, -0.2, 0.6, -0.9])
    assert judged(lambda x: next(values), 1.0, 5.0) == "unclear"


def test_a_gradient_that_is_not_finite_is_not_confirmed():
    assert judged(math.sqrt, 0.0, math.inf) == "unclear"
    assert judged(math.sin, 1.0, math.nan) == judged(math.sin, 1.0, math.inf) == "DISAGREES"


def test_a_derivative_that_is_nan_leads_to_why(tmp_path, capsys):
    file = tmp_path / "nans.py"
    file.write_text("import math\ndef f(x): return x + 0.0 * math.sqrt(abs(x - 1.0))\nasync def later(x): return x\n")
    assert main(["check", f"{file}:f", "--at", "[1.0]"]) == 1
    assert f"plaingrad why {file}:f --at '[1.0]'" in capsys.readouterr().out
    assert main(["grad", f"{file}:later", "--at", "[1.0]"]) == 2
    assert "async def" in capsys.readouterr().err


HOSTILE = {
    "nested": "[" * 100_000 + "]" * 100_000,
    "nested objects": '[' + '{"a":' * 300 + "1" + "}" * 300 + "]",
    "just too deep": "[" * 102 + "]" * 102,
    "5,001 digits": "[" + "1" * 5001 + "]",
    "no float is as large": "[1e999, 2.0]",
    "an int beyond all floats": "[1" + "0" * 400 + ", 2.0]",
    "a name twice": '{"width": 1.0, "width": 2.0, "height": 1.0}',
    "a name twice, further in": '[{"a": 1.0, "a": 2.0}, 1.0]',
    "NaN": "[NaN, 1.0]",
    "Infinity": "[Infinity, 1.0]",
    "-Infinity": "[[-Infinity], 1.0]",
    "nothing": "",
    "a byte order mark": "\ufeff[1.0, 2.0]",
    "half a list": "[1.0, 2.0",
    "a long text": '"' + "x" * 10_000 + '"',
    "an unpaired surrogate": '[1.0, 2.0, "\ud800"]',
}


@pytest.mark.parametrize("command", ["grad", "check"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_point_is_answered_in_one_line_and_status_2(kind, command, capsys):
    status, out, err = run(capsys, command, "model.py:area", "--at", HOSTILE[kind])
    assert (status, out) == (2, "")
    assert err.startswith("plaingrad: ")
    assert err.count("\n") == 1
    assert len(err) < 300


def test_a_hundred_levels_are_no_hostility(capsys):
    status, _, err = run(capsys, "grad", "model.py:area", "--at", "[" * 99 + "1" + "]" * 99)
    assert status == 2
    assert "missing a required argument" in err


def test_integers_inside_lists_and_objects_are_coordinates_too(capsys):
    status, out, _ = run(capsys, "grad", "model.py:loss", "--at", "[2, [1, 3]]")
    assert (status, json.loads(out)) == (0, [40.0, [8.0, 24.0]])
    status, out, _ = run(capsys, "grad", "model.py:nested", "--at", '[{"a": 2, "b": [3, 4]}]')
    assert (status, json.loads(out)) == (0, [{"a": 3.0, "b": [2.0, 8.0]}])


def test_what_is_no_finite_number_is_written_as_text(tmp_path, capsys):
    (tmp_path / "poles.py").write_text(
        "import numpy as np\ndef f(x, y, z):\n    return np.sqrt(x) - np.sqrt(y) + np.sqrt(0.0 * z) * 0.0\n"
    )
    status, out, _ = run(capsys, "grad", "poles.py:f", "--at", "[0.0, 0.0, 1.0]")
    assert status == 0
    values = json.loads(out, parse_constant=lambda name: pytest.fail(name))
    assert values[:2] == ["inf", "-inf"]
    assert [float(v) for v in values][:2] == [math.inf, -math.inf]


@pytest.mark.parametrize("command", ["grad", "check"])
@pytest.mark.parametrize("code", ["0", "", "3", "'bye'"])
def test_a_function_that_exits_has_not_passed(code, command, tmp_path, capsys):
    (tmp_path / "leaves.py").write_text(f"import sys\ndef f(x):\n    sys.exit({code})\n")
    status, out, err = run(capsys, command, "leaves.py:f", "--at", "[1.0]")
    assert (status, out) == (1, "")
    assert "sys.exit" in err


def test_a_function_that_exits_under_the_differences_only_has_not_passed(tmp_path, capsys):
    (tmp_path / "leaves.py").write_text(
        "calls = []\ndef f(x):\n    calls.append(1)\n    if len(calls) > 1:\n        raise SystemExit(0)\n    return x\n"
    )
    status, _, err = run(capsys, "check", "leaves.py:f", "--at", "[1.0]")
    assert status == 1
    assert "sys.exit" in err


@pytest.mark.parametrize("tolerance", ["nan", "inf", "0", "-1", "x"])
def test_a_tolerance_is_a_positive_number(tolerance, capsys):
    with pytest.raises(SystemExit) as left:
        main(["check", "model.py:area", "--at", "[1.0, 2.0]", "--tolerance", tolerance])
    assert left.value.code == 2


def test_a_position_of_5000_digits_is_no_argument(capsys):
    status, _, err = run(capsys, "grad", "model.py:area", "--at", "[1.0, 2.0]", "--wrt", "9" * 5000)
    assert status == 2


def started(tmp_path, *argv, **options):
    env = {**os.environ, "PYTHONPATH": str(Path(plaingrad.__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-m", "plaingrad", *argv], cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True, **options
    )


@pytest.mark.parametrize("argv", [["show", "model.py:loss"], ["grad", "model.py:area", "--at", "[1.0, 2.0]"]])
def test_a_reader_that_leaves_early_is_no_error(argv, tmp_path):
    process = started(tmp_path, *argv, stdout=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == READER_GONE
    process.stderr.close()


def test_a_broken_pipe_of_the_functions_own_is_its_failure(tmp_path, capsys):
    (tmp_path / "pipe.py").write_text("def f(x):\n    raise BrokenPipeError('mine')\n")
    status, _, err = run(capsys, "grad", "pipe.py:f", "--at", "[1.0]")
    assert status == 1
    assert "mine" in err


def test_an_interrupt_is_silent(tmp_path, capsys):
    (tmp_path / "long.py").write_text("def f(x):\n    raise KeyboardInterrupt\n")
    assert run(capsys, "grad", "long.py:f", "--at", "[1.0]") == (130, "", "")


def test_the_cache_is_listed_pruned_and_cleared(tmp_path, capsys, monkeypatch):
    pytest.importorskip("numba")
    kept = tmp_path / "kept"
    monkeypatch.setenv("PLAINGRAD_CACHE_DIR", str(kept))
    kept.mkdir(0o700)
    (kept / "mine.txt").write_text("not the cache's")
    for k, age in enumerate((1, 40, 100)):
        path = kept / f"plaingrad_native_{k:040x}.py"
        path.write_bytes(b"x" * 1000)
        os.utime(path, (path.stat().st_mtime - age * 86400,) * 2)
    status, out, _ = run(capsys, "cache")
    assert status == 0
    assert [line.split()[1:] for line in out.splitlines()[:3]] == [
        ["1,000", f"plaingrad_native_{k:040x}"] for k in range(3)
    ]
    assert out.splitlines()[3] == f"{kept}: 3 kept, 3,000 bytes"
    assert run(capsys, "cache", "prune")[1].startswith("deleted 1 of 1,000 bytes\n")
    assert run(capsys, "cache", "prune", "--age", "30")[1].startswith("deleted 1 of 1,000 bytes\n")
    assert run(capsys, "cache", "prune", "--size", "1K")[1].startswith("deleted 0 ")
    assert run(capsys, "cache", "prune", "--size", "much")[0] == 2
    assert run(capsys, "cache", "clear")[1].startswith("deleted 1 of 1,000 bytes\n")
    assert [p.name for p in kept.iterdir()] == ["mine.txt"]
    monkeypatch.setenv("PLAINGRAD_CACHE_DIR", "")
    assert run(capsys, "cache")[:2] == (0, "nothing is kept: PLAINGRAD_CACHE_DIR is empty, or there is no home\n")


def test_info_prints_a_line_a_package_and_the_form_of_the_core(capsys):
    assert main(["info"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["numpy"] == np.__version__
    assert lines["core"].startswith(("compiled", "python: "))


def test_info_the_cache_and_obstacles_are_data_too(tmp_path, capsys, monkeypatch):
    import plaingrad

    assert json.loads(run(capsys, "info", "--json")[1]) == plaingrad.info()
    pytest.importorskip("numba")
    monkeypatch.setenv("PLAINGRAD_CACHE_DIR", str(tmp_path))
    (tmp_path / f"plaingrad_native_{0:040x}.py").write_bytes(b"x" * 10)
    found = json.loads(run(capsys, "cache", "--json")[1])
    assert [entry["bytes"] for entry in found["entries"]] == [10] and found["folder"] == str(tmp_path)
    assert json.loads(run(capsys, "cache", "clear", "--json")[1])["deleted"] == 1
    monkeypatch.setenv("PLAINGRAD_CACHE_DIR", "")
    assert json.loads(run(capsys, "cache", "--json")[1])["folder"] is None
    assert run(capsys, "why-not-native", "model.py:area", "--at", "[3.0, 4.0]", "--json")[:2] == (0, "[]\n")


# --- jacobian and hessian ---


def test_jacobian_has_a_gradient_in_place_of_each_number_returned(capsys):
    assert json.loads(run(capsys, "jacobian", "model.py:curve", "--at", "[2.0, [3.0, 5.0]]")[1]) == {
        "products": [[3.0, [2.0, 0.0]], [5.0, [0.0, 2.0]]],
        "name": None,
        "square": [4.0, [0.0, 0.0]],
    }
    by_name = run(capsys, "jacobian", "model.py:curve", "--at", '{"w": [3.0, 5.0], "a": 2.0}', "--wrt", "a")[1]
    assert json.loads(by_name)["products"][1] == {"w": None, "a": 5.0}
    assert json.loads(run(capsys, "jacobian", "model.py:quadratic", "--at", "[[1, 2]]", "--array")[1]) == [[2.0, 4.0]]


def test_jacobian_of_arrays_has_their_axes(capsys):
    status, out, _ = run(capsys, "jacobian", "model.py:scaled", "--at", "[2.0, [3.0, 5.0]]", "--array")
    assert (status, json.loads(out)) == (0, [[3.0, 5.0], [[2.0, 0.0], [0.0, 2.0]]])
    table = run(capsys, "jacobian", "model.py:scaled", "--at", "[2.0, [3.0, 5.0]]", "--array", "--table")[1]
    assert [line.split() for line in table.splitlines()] == [
        ["a", "w[0]", "w[1]"],
        ["result[0]", "3", "2", "0"],
        ["result[1]", "5", "0", "2"],
    ]


def test_hessian_has_a_gradient_in_place_of_each_number_of_the_point(capsys):
    status, out, _ = run(capsys, "hessian", "model.py:area", "--at", "[3.0, 4.0]")
    assert (status, out) == (0, "[[0.0, 1.0], [1.0, 0.0]]\n")
    by_name = run(capsys, "hessian", "model.py:cubic", "--at", '{"p": {"x": 2.0, "y": [3.0]}, "label": "n"}')[1]
    assert json.loads(by_name) == {
        "p": {
            "x": {"p": {"x": 6.0, "y": [4.0]}, "label": None},
            "y": [{"p": {"x": 4.0, "y": [0.0]}, "label": None}],
        },
        "label": None,
    }
    table = run(capsys, "hessian", "model.py:cubic", "--at", '[{"x": 2.0, "y": [3.0]}, "n"]', "--table")[1]
    assert [line.split() for line in table.splitlines()] == [
        ["p['x']", "p['y'][0]"],
        ["p['x']", "6", "4"],
        ["p['y'][0]", "4", "0"],
    ]


def test_a_gradient_as_a_table(capsys):
    status, out, _ = run(capsys, "grad", "model.py:cubic", "--at", '[{"x": 2.0, "y": [3.0]}, "n"]', "--table")
    assert status == 0
    assert [line.split() for line in out.splitlines()] == [
        ["path", "value", "derivative"],
        ["p['x']", "2", "12"],
        ["p['y'][0]", "3", "4"],
    ]


def test_matrices_without_numbers_or_words_are_refused(capsys):
    assert "holds no number" in refused(capsys, "hessian", "model.py:unused", "--at", '["n", "m"]')
    assert "holds no number" in refused(capsys, "jacobian", "model.py:unused", "--at", '["n", "m"]')
    assert "returned Box" in refused(capsys, "jacobian", "model.py:Box", "--at", "[1.0]")


def test_an_error_names_the_function_that_was_given(tmp_path, capsys):
    file = tmp_path / "worded.py"
    file.write_text("def worded(x):\n    return 'a word'\n")
    status, out, err = run(capsys, "jacobian", f"{file}:worded", "--at", "[1.0]")
    assert status != 0 and out == ""
    assert "worded returned a str" in err


def test_why_names_the_line_and_prints_data(tmp_path, capsys):
    file = tmp_path / "rooted.py"
    file.write_text("import math\n\ndef root(x, n):\n    return math.sqrt(x) * n\n")
    assert main(["why", f"{file}:root", "--at", "[0.0, 2]"]) == 1
    text = capsys.readouterr().out
    assert "rooted.py:4" in text and "math.sqrt(x)" in text and "slope inf" in text
    assert main(["why", f"{file}:root", "--at", "[4.0, 2]", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["events"] == []
    assert main(["why", f"{file}:root", "--at", "[0.0, 2]", "--mode", "forward", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["events"][0]["what"] == "tangent"
    assert main(["check", f"{file}:root", "--at", "[4.0, 2]", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["verdict"] == "agrees"
