"""`python -m plaingrad` is the command `plaingrad`."""

import sys

from plaingrad.cli import main

if __name__ == "__main__":
    sys.exit(main())
