"""`python -m benchmarks`: the plain tier beside its peers."""

import sys

from benchmarks.plain import main

sys.exit(main())
