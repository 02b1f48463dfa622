"""`python -m benchmarks.concurrency`: a map-reduce with and without threads."""

import sys

from benchmarks.concurrency.threads import main

sys.exit(main())
