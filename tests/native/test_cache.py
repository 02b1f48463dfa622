"""Derived programs kept on disk: found again, never a stale one, and damaged files do no harm."""

import importlib
import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import plaingrad
from plaingrad import rulebook

numba = pytest.importorskip("numba")

from numba import types  # noqa: E402

from plaingrad.native.compile import build, cache  # noqa: E402

HERE = os.pathsep.join((str(Path(plaingrad.__file__).parents[1]), os.environ.get("PYTHONPATH", "")))
MODEL = """
import math
FACTOR = 2.5

def helper(a, b):
    return a * b + math.exp(a) * FACTOR

def model(x, n):
    s = x
    for _ in range(n):
        s = helper(math.sin(s) * 0.1, x)
    return s

def of_array(a, c):
    total = 0.0
    for i in range(a.size):
        total += c[0] * a[i] ** 2 * c[1]
    return total

def recursive(x, n):
    if n < 1:
        return x
    return x * recursive(x * 0.5, n - 1)
"""
RUN = """
import sys
import numpy as np
from plaingrad.native.border import call
from plaingrad.native.compile import build
import model, plaingrad
if sys.argv[1] == "second":
    def refused(*args):
        raise AssertionError("the front end was run")
    build.program = call.program = refused
print(plaingrad.value_and_grad(model.model, (0,), tier="native")(0.7, 3))
value, a_bar = plaingrad.value_and_grad(model.of_array, tier="native")(np.linspace(0.0, 1.0, 20), (0.5, 2.0))
print(value, a_bar.tolist())
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of its own; rules that other tests have entered are no concern of it."""
    every = rulebook.entered
    others = [rule for rule in every() if rule.users]
    monkeypatch.setattr(
        rulebook, "entered", lambda: (rule for rule in every() if all(rule is not other for other in others))
    )
    monkeypatch.setenv("PLAINGRAD_CACHE_DIR", str(tmp_path / "kept"))
    yield tmp_path / "kept"
    forget()


@pytest.fixture
def model(tmp_path, monkeypatch, request):
    """A module of the user's."""
    name = f"model_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(MODEL)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(name)
    sys.modules.pop(name, None)


def forget():
    """What a new process does not know."""
    build._built.clear()
    for name in [name for name in sys.modules if name.startswith(cache.PREFIX)]:
        del sys.modules[name]


def not_derived(*args):
    raise AssertionError("it was derived anew")


def gradient(f, *args):
    return plaingrad.grad(f, tier="native")(*args)


def key(f, mode="pullback", signature=(types.float64, types.int64), active=(0,), **options):
    return cache.key_of(mode, f, signature, active, options)


def written(text, place):
    """The module of a source."""
    path = place / "written.py"
    path.write_text(textwrap.dedent(text))
    space = {"__name__": "written"}
    exec(compile(path.read_text(), str(path), "exec"), space)
    return space


def processes(tmp_path, *which):
    """The output of processes that run at once."""
    (tmp_path / "model.py").write_text(MODEL)
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(tmp_path), HERE)),
        "PLAINGRAD_CACHE_DIR": str(tmp_path / "kept"),
    }
    running = [
        subprocess.Popen(
            [sys.executable, "-c", RUN, word],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for word in which
    ]
    done = [(*run.communicate(timeout=300), run.returncode) for run in running]
    for _, complaint, status in done:
        assert status == 0, complaint
    return [out for out, _, _ in done]


def test_a_second_process_neither_derives_nor_compiles_and_gives_the_same(tmp_path):
    first = processes(tmp_path, "first")
    files = {p: p.stat().st_mtime_ns for p in (tmp_path / "kept").rglob("*.bin")}
    assert files
    assert processes(tmp_path, "second") == first
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "kept").rglob("*.bin")} == files


def test_processes_that_write_at_once_do_not_disturb_one_another(tmp_path):
    outputs = processes(tmp_path, "first", "first")
    assert len(set(outputs)) == 1
    assert processes(tmp_path, "second") == outputs[:1]
    assert not list((tmp_path / "kept").glob("*.tmp"))


def test_functions_of_arrays_and_tuples_are_found_again(folder, model, monkeypatch):
    a, c = np.array([1.0, 2.0]), (3.0, 0.5)
    before = gradient(model.of_array, a, c)
    np.testing.assert_allclose(before, 3.0 * a)
    forget()
    monkeypatch.setattr(build, "program", not_derived)
    np.testing.assert_array_equal(gradient(model.of_array, a, c), before)


@pytest.mark.parametrize(
    "take",
    [
        lambda f: plaingrad.hessian(f, tier="native")(0.7, 3),
        lambda f: plaingrad.hvp(f, (0.7, 3), (1.0, None), tier="native")[0],
        lambda f: plaingrad.derivative(f, order=2, tier="native")(0.7, 3),
    ],
    ids=["hessian", "hvp", "derivative"],
)
def test_programs_derived_from_derived_ones_are_found_again(take, folder, model, monkeypatch):
    before = take(model.model)
    expected = plaingrad.derivative(model.model, order=2, tier="plain")(0.7, 3)
    np.testing.assert_allclose(before, expected, rtol=1e-12)
    forget()
    monkeypatch.setattr(build, "program", not_derived)
    assert take(model.model) == before


def test_recursive_functions_are_not_kept(folder, model):
    assert key(model.model) is not None
    assert key(model.recursive) is None
    model.recursive = numba.njit(model.recursive)
    assert key(model.recursive.py_func) is None


def test_the_text_of_a_program_is_kept_too(folder, model):
    first = build.derived("pullback", model.model, (types.float64, types.int64), (0,))
    forget()
    second = build.derived("pullback", model.model, (types.float64, types.int64), (0,))
    assert second.run is not first.run
    assert (second.text, second.writes) == (first.text, first.writes)
    assert second.python(0.7, 3, 1.0) == pytest.approx(first.run(0.7, 3, 1.0), rel=1e-14)


@pytest.mark.parametrize(
    "change",
    [
        ("FACTOR = 2.5", "FACTOR = 2.0"),
        ("FACTOR = 2.5", "FACTOR = 2"),
        ("math.exp(a)", "math.cos(a)"),
        ("math.sin(s) * 0.1", "math.sin(s) * 0.2"),
        ("def helper(a, b)", "def helper(b, a)"),
        ("FACTOR = 2.5", "FACTOR = 2.5\\n"),
    ],
    ids=["constant", "its type", "callee", "code", "parameters", "lines"],
)
def test_what_is_changed_is_derived_anew(change, folder, tmp_path):
    old, new = (text.replace("\\n", "\n") for text in change)
    before = written(MODEL, tmp_path)["model"]
    assert key(before) == key(written(MODEL, tmp_path)["model"])
    assert key(before) != key(written(MODEL.replace(old, new), tmp_path)["model"])


def test_a_changed_constant_changes_the_gradient(folder, model):
    slope_before = gradient(model.helper, 0.0, 2.0)
    assert slope_before == 4.5
    model.FACTOR = 10.0
    forget()
    assert gradient(model.helper, 0.0, 2.0) == 12.0


def test_the_key_tells_mode_types_positions_options_and_closures_apart(folder):
    def scaled(c):
        return lambda x, n: x * n * c

    f = scaled(2.0)
    keys = [
        key(f),
        key(scaled(3.0)),
        key(f, mode="pushforward"),
        key(f, signature=(types.float32, types.int64)),
        key(f, signature=(types.float64, types.float64)),
        key(f, signature=(types.float64, types.float64), active=(0, 1)),
        key(f, fastmath=True),
        key(f, fastmath={"contract", "nsz"}),
    ]
    assert None not in keys
    assert len(set(keys)) == len(keys)
    assert key(f, fastmath={"nsz", "contract"}) == keys[-1]
    assert key(scaled(2.0)) == keys[0]


def test_what_no_other_process_could_name_is_not_kept(folder):
    array = np.ones(3)
    settings = importlib.import_module("textwrap")

    def captures_an_array(x, n):
        return x * array[n]

    def reads_a_module(x, n):
        return x * settings.factor

    assert key(captures_an_array) is None
    assert key(reads_a_module) is None
    assert gradient(captures_an_array, 2.0, 1) == 1.0
    assert not list(folder.glob("*.py"))  # helpers may be


def test_nothing_is_kept_where_the_program_has_rules_of_its_own(folder, model):
    assert key(model.model) is not None

    def own(x):
        return x

    plaingrad.nondifferentiable(own)
    try:
        assert key(model.model) is None
    finally:
        rulebook.remove(own)
    assert key(model.model) is not None


def test_an_empty_name_of_the_folder_switches_it_off(folder, model, monkeypatch):
    monkeypatch.setenv("PLAINGRAD_CACHE_DIR", "")
    assert key(model.model) is None
    assert gradient(model.helper, 0.0, 2.0) == 4.5


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path, model, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PLAINGRAD_CACHE_DIR", str(tmp_path / "file" / "kept"))
    forget()
    assert gradient(model.helper, 0.0, 2.0) == 4.5


@pytest.mark.parametrize("ending", [".py", ".bin"])
@pytest.mark.parametrize("left", [0, 0.5, "other", "flipped"])
def test_damaged_files_are_replaced(ending, left, folder, model):
    assert gradient(model.helper, 0.0, 2.0) == 4.5
    forget()
    damaged = [p for p in folder.rglob(f"*{ending}")]
    assert damaged
    for path in damaged:
        content = path.read_bytes()
        if left == "other":
            new = b"nonsense" * 20
        elif left == "flipped":
            new = bytearray(content)
            new[len(content) * 2 // 3] ^= 1
        else:
            new = content[: int(len(content) * left)]
        stat = path.stat()
        path.write_bytes(new)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert gradient(model.helper, 0.0, 2.0) == 4.5
    forget()
    assert gradient(model.helper, 0.0, 2.0) == 4.5
    assert math.isclose(gradient(model.helper, 1.0, 2.0), 2.0 + 2.5 * math.e)


CALLED = """
import numba

@numba.njit
def squares(x, n):
    s = 0.0
    for k in range(n):
        if x[k] != x[k]:
            s += 1000.0
        else:
            s += x[k] * x[k]
    return s

def repeated(x, n):
    s = 0.0
    for k in range(n):
        s += squares(x, n)
    return s

fast = numba.njit(fastmath=True)(repeated)
exact = numba.njit(error_model="numpy")(repeated)
"""


def test_what_a_function_calls_has_the_options_of_this_caller(folder, tmp_path):
    """Called with fastmath, `squares` takes no number to be nan; the program kept for that is not the other one's."""
    (tmp_path / "called_twice.py").write_text(CALLED)
    sys.path.insert(0, str(tmp_path))
    try:
        from called_twice import exact, fast

        x = np.linspace(0.1, 1.7, 101)
        x[5] = math.nan
        plaingrad.value_and_grad(fast, tier="native")(x, 101)
        value, x_bar = plaingrad.value_and_grad(exact, tier="native")(x, 101)
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("called_twice", None)
    rest = np.delete(x, 5)
    np.testing.assert_allclose(value, 101 * (1000.0 + np.sum(rest * rest)), rtol=1e-13)
    np.testing.assert_allclose(np.delete(x_bar, 5), 202.0 * rest, rtol=1e-13)
    assert x_bar[5] == 0.0


def test_the_file_of_another_program_is_not_taken_for_this_one(folder, model):
    assert gradient(model.helper, 0.0, 2.0) == 4.5
    (one,) = folder.glob("*.py")
    expected = gradient(model.model, 0.7, 3)
    (other,) = set(folder.glob("*.py")) - {one}
    other.write_bytes(one.read_bytes())
    forget()
    assert gradient(model.model, 0.7, 3) == expected
