"""The command line of the native benchmark."""

import sys

from benchmarks.native.measure import main

sys.exit(main())
