"""What every test shares: one BLAS thread, and hypothesis without a clock."""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before NumPy is first imported: BLAS reads them once
os.environ["PLAINGRAD_CACHE_DIR"] = ""  # what was compiled before must not decide a test

import hypothesis  # noqa: E402

# No deadline: a busy neighbour must not fail a law. Under CI the examples are the same in every run.
hypothesis.settings.register_profile(
    "plaingrad", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True
)
hypothesis.settings.load_profile("plaingrad")
