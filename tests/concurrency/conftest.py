"""Lets the files of this folder import the helpers of tests/language, whatever pytest's import mode."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "language"))
