"""What every test shares: one BLAS thread, hypothesis without a clock, and no garbage of before."""

import gc
import os
import zlib
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before NumPy is first imported: BLAS reads them once
os.environ["PLAINGRAD_CACHE_DIR"] = ""  # what was compiled before must not decide a test

import hypothesis  # noqa: E402

# No deadline: a busy neighbour must not fail a law. Under CI the examples are the same in every run.
hypothesis.settings.register_profile(
    "plaingrad", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True
)
hypothesis.settings.load_profile("plaingrad")

# What the version of CPython decides in the native tier is in VERSIONED; the rest is LLVM's. Rules are formulas, and the
# derivative operators, what extends them and the pages stand on the engine, which is tested whole.
SAMPLED = ("native", "rules", "api", "extend", "tangents", "docs")
VERSIONED = (
    "test_frontend.py",
    "test_hazards.py",
    "test_language_programs.py",
    "test_border.py",
    "test_cache.py",
)


def pytest_addoption(parser):
    parser.addoption(
        "--one-in",
        type=int,
        default=1,
        metavar="N",
        help="of the tests of what does not depend on the version of CPython, native code and rules say, run one in N",
    )


def pytest_collection_finish():
    """What tests are made of stays to the end: each `gc.collect()` of theirs would look through half a million objects.

    Not under CI, where hypothesis asks the collector who refers to a random generator, and warns if it says nobody.
    """
    if not os.environ.get("CI"):
        gc.collect()
        gc.freeze()


def pytest_collection_modifyitems(config, items):
    """A sample of what does not depend on the version, the same in every run; all other tests stay."""
    n = config.getoption("--one-in")
    if n == 1:
        return
    here = Path(__file__).parent

    def is_left_out(item):
        folder = item.path.relative_to(here).parts[0] if here in item.path.parents else ""
        is_sampled = folder in SAMPLED and item.path.name not in VERSIONED
        return is_sampled and zlib.crc32(item.nodeid.encode()) % n != 0

    left_out = [item for item in items if is_left_out(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not is_left_out(item)]
