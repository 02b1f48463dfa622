"""Times of the native tier beside Numba's primal, C adjoints and other systems, taken side by side in one run.

python -m benchmarks.native --c micro.c --peers          # everything; see `python -m benchmarks.native --help`

One thread, one process. The candidates of a workload take turns and the minimum of the turns counts; only ratios
within one run mean something. What is not installed is left out, with a note.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy loads its BLAS

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["PLAINGRAD_CACHE_DIR"] = ""  # a first call is one that derives and compiles
