"""What every test shares: one BLAS thread, hypothesis without a clock, and no garbage of before."""

import functools
import gc
import os
import sys
import sysconfig
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before NumPy is first imported: BLAS reads them once
os.environ["PLAINGRAD_CACHE_DIR"] = ""  # what was compiled before must not decide a test

import hypothesis  # noqa: E402
import pytest  # noqa: E402

from plaingrad.engine.compiled import WHY_NOT, core  # noqa: E402
from tests.sampling import ALL, number_of  # noqa: E402

OWN_THRESHOLDS = gc.get_threshold()
if not ALL:
    gc.set_threshold(
        5000, 10, 10
    )  # searching for garbage is a tenth of the time of tests, after each 700 objects

# No deadline: a busy neighbour must not fail a law. Under CI the examples are the same in every run.
hypothesis.settings.register_profile(
    "plaingrad", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True
)
hypothesis.settings.load_profile("plaingrad")

# What the version of CPython decides in the native tier is in VERSIONED, of which each CPython runs one half; the rest is
# LLVM's. Rules are formulas, and the derivative operators, what extends them and the pages stand on the engine.
SAMPLED = (
    *("native", "rules", "api", "extend", "tangents", "docs", "scipy", "optimize", "integrate", "features"),
    *("test_house.py", "test_examples.py", "test_gallery.py", "test_benchmarks.py", "test_cli_coverage.py"),
    *("test_testing.py", "test_testing_of_cotangents.py", "test_singular_points.py", "test_optimizers.py"),
)
VERSIONED = tuple(
    f"native/test_{name}.py" for name in ("frontend", "hazards", "language_programs", "border", "cache")
)

# What has many tests that are alike and ask little of the version of CPython: `make test` runs a part, CI the others in
# its other environments. Of these folders a sixth each, and one more where JAX, Dask and MPI are; by whole files where the
# tests of a file share what takes long: what is compiled for native tests, packages that are imported for those of the wild,
FIFTHS = ("1/5", "2/5", "3/5", "4/5", "5/5")
BY_FILES = ("native", "wild")
PARTED = dict.fromkeys(("native", "rules", "api", "scipy", "docs", "wild", "types"), (*FIFTHS, "3/5"))
# and of these files a quarter: where JAX, Dask and MPI are, they do not run.
PARTED |= dict.fromkeys(
    (
        *(
            f"engine/test_{name}.py"
            for name in ("series", "colouring", "index_sets", "scale", "revolve", "peak_memory")
        ),
        *(f"engine/test_patterns{name}.py" for name in ("", "_of_every_rule", "_of_random_programs")),
        *(f"engine/test_{name}.py" for name in ("columns_of_arrays", "large_arrays_back", "arrays_by_rules")),
        *("hazards/test_14_subclasses_of_arrays.py", "hazards/test_06_text_edited_and_given_away.py"),
        *(
            "test_house.py",
            "test_examples.py",
            "test_gallery.py",
            "test_ordinary_programs.py",
            "test_cli.py",
            "test_benchmarks.py",
        ),
    ),
    ("1/5", "2/5", "4/5", "5/5"),
)
# The parts in which optimised code is compiled, half of the files each.
OPTIMISED_IN = ("1/5", "3/5")
# Each CPython runs one of so many equal shares of these tests, neighbours another one; of those ELSEWHERE, which are tests
# of the language, `make test` runs all.
SHARES = {"wild": 3, "concurrency": 3, "engine": 2, "hazards": 2}
SHARES_ELSEWHERE = {"language": 2, **dict.fromkeys(VERSIONED, 2)}


def pytest_addoption(parser):
    parser.addoption(
        "--one-in",
        type=int,
        default=1,
        metavar="N",
        help="of the tests of what does not depend on the version of CPython, native code and rules say, run one in N",
    )
    parser.addoption(
        "--part",
        choices=(*FIFTHS, "all"),
        default="all",
        help="which part of the tests that are PARTED (tests/conftest.py) runs; --one-in then leaves it whole",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Nothing that collecting makes is garbage: an eighth of its time was spent looking for some."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish():
    """What tests are made of stays to the end: each `gc.collect()` of theirs would look through a million objects.

    Hypothesis, before it draws its first example, asks the collector who refers to a random generator: that comes first.
    """

    @hypothesis.settings(max_examples=1, database=None)
    @hypothesis.given(hypothesis.strategies.none())
    def draws_an_example(_):
        pass

    draws_an_example()
    set_aside()


def pytest_sessionstart(session):
    """A worker does not report that there was nothing to prepare and nothing to clear away, nor that a test begins.

    These are two thirds of its reports, and nobody reads the beginnings but who asks for names (`-v`).
    """
    for plugin in session.config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            plugin.sendevent = unless_it_says_nothing(plugin.sendevent, session.config.get_verbosity() > 0)


def unless_it_says_nothing(send, is_named):
    """`send`, for all but reports of a setup or teardown that passed at once and wrote nothing, and beginnings."""

    def sent(name, **details):
        if name == "logstart" and not is_named:
            return
        report = details.get("data", {}) if name == "testreport" else {}
        is_around = report.get("when") in ("setup", "teardown") and report["outcome"] == "passed"
        if not (is_around and report["duration"] < 0.005 and not report["sections"]):
            send(name, **details)

    return sent


def pytest_terminal_summary(terminalreporter):
    """Say which form of the engine was tested, and why no extension was built."""
    notes = Path(__file__).parents[1].glob(f"build/core{sysconfig.get_config_var('EXT_SUFFIX')}*.txt")
    reasons = "" if core is not None else "".join(f"; {note.read_text()[-2000:]}" for note in notes)
    terminalreporter.write_line(f"Core: {WHY_NOT or 'compiled'}{reasons}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """What a file has left behind (imported packages, compiled programs) is kept from searches by later ones likewise."""
    try:
        return (yield)
    finally:
        if nextitem is not None and nextitem.path != item.path:
            set_aside()


@pytest.fixture
def collections_as_usual():
    """For tests that measure memory: garbage is looked for as often as Python does by itself."""
    ours = gc.get_threshold()
    gc.set_threshold(*OWN_THRESHOLDS)
    yield
    gc.set_threshold(*ours)


def set_aside():
    gc.collect()
    gc.freeze()


def pytest_ignore_collect(collection_path, config):
    """A file that has no test in this run is not imported, nor are the packages that it asks for."""
    if config.getoption("-m") != "not optimised" or collection_path.suffix != ".py":
        return None
    folder, place = place_of(collection_path)
    if folder not in BY_FILES or place in SHARES_ELSEWHERE or not collection_path.name.startswith("test_"):
        return None
    if collection_path in named_files(config):
        return None
    n, part = sample_asked_for(config)
    return is_of_others(folder, place, place, n, part) or None


def pytest_collection_modifyitems(config, items):
    """Samples, the same in every run: of what does not depend on the version, and of what is compiled too.

    A file or a test that is named by whoever calls pytest runs.
    """
    n, part = sample_asked_for(config)
    named = named_files(config)
    left_out = [is_left_out(item, n, part, item.path in named) for item in items]
    config.hook.pytest_deselected(items=[item for item, out in zip(items, left_out) if out])
    items[:] = [item for item, out in zip(items, left_out) if not out]


def sample_asked_for(config):
    """One in how many runs of what is sampled, and which part of what is parted."""
    return config.getoption("--one-in"), "all" if ALL else config.getoption("--part")


def named_files(config):
    named = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
    return {path for path in named if path.is_file()}


@functools.cache
def place_of(path):
    """The folder of tests/ that a file is in, or its name, and its path there."""
    here = Path(__file__).parent
    if here not in path.parents:
        return "", ""
    within = path.relative_to(here)
    return within.parts[0], within.as_posix()


def is_left_out(item, n, part, is_named):
    """Whether a test is in no sample of this run."""
    if part != "all" and item.get_closest_marker("optimised"):
        half = number_of(f"half of {item.path.name}") % 2
        return part not in OPTIMISED_IN or OPTIMISED_IN.index(part) != half
    if is_named:
        return False
    folder, place = place_of(item.path)
    is_whole = folder in BY_FILES and place not in SHARES_ELSEWHERE
    return is_of_others(folder, place, place if is_whole else item.nodeid, n, part)


def is_of_others(folder, place, name, n, part):
    """Whether what is called `name` in this file, or the file itself, is in no sample of this run.

    Those are its part of what is alike, its share of what the CPythons share out among them, and one in n of what all
    versions give alike.
    """
    parts = PARTED.get(place) or PARTED.get(folder)
    shares = SHARES.get(folder, 1) if n > 1 or part != "all" else 1
    if n > 1:
        shares = max(shares, SHARES_ELSEWHERE.get(folder, 1), SHARES_ELSEWHERE.get(place, 1))
    if parts and part != "all":
        which = f"{place} belongs here" if folder in BY_FILES else f"{name}, which part"
        if parts[number_of(which) % len(parts)] == part:
            return False
        if n == 1 or shares == 1 or place in PARTED:
            return True
    if shares > 1:
        return number_of(name) % shares != sys.version_info.minor % shares
    is_sampled = n > 1 and folder in SAMPLED
    return is_sampled and number_of(name) % n != 0
