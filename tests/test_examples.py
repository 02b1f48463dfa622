"""The examples run, and find what they say they find."""

import importlib
import importlib.metadata
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import plaingrad

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def example(monkeypatch):
    """Import an example by name as `python examples/NAME.py` would find it."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    before = set(sys.modules)

    def load(name):
        with warnings.catch_warnings():  # colour-science mentions the optional packages that it misses
            warnings.simplefilter("ignore")
            return importlib.import_module(name)

    yield load
    ours = {path.stem for path in EXAMPLES.glob("*.py")}
    for name in ours & (set(sys.modules) - before):
        del sys.modules[name]


@pytest.mark.parametrize("name", ["lotka_volterra.py", "lotka_volterra_numba.py"])
def test_the_model_of_hares_and_lynxes_does_not_know_us(name):
    assert "plaingrad" not in (EXAMPLES / name).read_text()


def test_hares_and_lynxes_are_fitted(example, capsys):
    pytest.importorskip("scipy")
    lynx_hare = example("lynx_hare")
    record = lynx_hare.read_record(lynx_hare.RECORD)
    assert len(record) == 21
    chosen = lynx_hare.ways(record)[:2]
    fits = lynx_hare.fit_all(chosen, rounds=2)
    exact, by_differences = (done[0] for done in fits)
    found = exact.parameters
    assert found.hare_growth == pytest.approx(0.54, abs=0.01)
    assert found.predation == pytest.approx(0.027, abs=0.001)
    assert found.lynx_death == pytest.approx(0.80, abs=0.01)
    assert found.lynx_growth == pytest.approx(0.024, abs=0.001)
    assert exact.misfit <= by_differences.misfit + 1e-6
    assert 5 * exact.evaluations < by_differences.evaluations
    lynx_hare.show_fits(chosen, fits)
    out = capsys.readouterr().out
    assert "hare_growth      0.54" in out
    assert "plain Python  SciPy's differences" in out
    assert "the native tier is left out" in out


@pytest.mark.slow  # compiles
def test_the_compiled_model_of_hares_and_lynxes_is_the_plain_one(example):
    pytest.importorskip("scipy")
    pytest.importorskip("numba")
    lynx_hare = example("lynx_hare")
    plain, _, compiled, _ = lynx_hare.ways(lynx_hare.read_record(lynx_hare.RECORD))
    logs = lynx_hare.np.log(lynx_hare.astuple(lynx_hare.GUESS))
    value, gradient = plaingrad.value_and_grad(plain.function)(logs, *plain.arguments)
    by_numba, natively = plaingrad.value_and_grad(compiled.function, tier="native")(logs, *compiled.arguments)
    assert by_numba == pytest.approx(value, rel=1e-12)
    assert natively == pytest.approx(gradient, rel=1e-9)


def test_the_gradient_of_the_misfit_has_the_fields_of_the_parameters(example, capsys):
    pytest.importorskip("scipy")
    lynx_hare = example("lynx_hare")
    lynx_hare.show_gradient(lynx_hare.GUESS, lynx_hare.read_record(lynx_hare.RECORD))
    table = capsys.readouterr().out.splitlines()[-6:]
    assert [line.split()[0] for line in table] == [
        field.name for field in lynx_hare.fields(lynx_hare.Parameters)
    ]
    for line in table:
        exact, rough = (float(text) for text in line.split()[2:4])
        assert exact == pytest.approx(rough, rel=1e-7)


def test_the_fit_is_drawn(example, tmp_path):
    pytest.importorskip("scipy")
    try:
        importlib.metadata.version("matplotlib")  # colour-science puts a stand-in where there is none
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("no matplotlib")
    lynx_hare = example("lynx_hare")
    path = tmp_path / "new" / "fit.png"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        example("lynx_hare_picture").picture(
            lynx_hare.GUESS, lynx_hare.GUESS, lynx_hare.read_record(lynx_hare.RECORD), path
        )
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 20_000


def test_the_papers_colour_difference(example, capsys):
    pytest.importorskip("colour")
    value, gradient = example("colour_difference").main()
    assert value == pytest.approx(86.614312, abs=1e-6)
    assert gradient == pytest.approx([-1.7697120, 28.8881552, -0.0449283], abs=1e-6)
    out = capsys.readouterr().out
    assert "86.6143119     -1.7697120  28.8881552  -0.0449283" in out
    assert "source lines in 16 files" in out


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_sensitivities_by_monte_carlo_over_processes(example, capsys):
    (value, slope), (exact, exact_slope) = example("monte_carlo").main(4000, 2)
    assert value == pytest.approx(exact, rel=0.05)
    for name, error in (("spot", 0.02), ("volatility", 2.0), ("rate", 2.0)):
        assert getattr(slope, name) == pytest.approx(getattr(exact_slope, name), abs=error)
    assert "2 tasks of 4000 paths" in capsys.readouterr().out


def test_the_formula_for_the_average_price_has_the_slopes_of_its_differences(example):
    model = example("monte_carlo")
    slope = plaingrad.grad(model.closed_form)(model.Market())
    for name in ("spot", "volatility", "rate"):
        at = getattr(model.Market(), name)
        above, below = (model.closed_form(model.Market(**{name: at + h})) for h in (1e-5, -1e-5))
        assert getattr(slope, name) == pytest.approx((above - below) / 2e-5, rel=1e-7)


@pytest.mark.slow
def test_logistic_regression_over_dask():
    pytest.importorskip("distributed")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "dask_logistic.py"), "4", "2000", "400"],
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr
    before, after = re.search(r"loss (\S+) before, (\S+) after", done.stdout).groups()
    assert float(before) == pytest.approx(0.6931, abs=1e-4) and float(after) < 0.45
    assert float(re.search(r"off by at most (\S+)", done.stdout)[1]) < 0.25
