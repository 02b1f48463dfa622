"""The command line: derivatives of a function that stands in a file.

    plaingrad grad  model.py:loss --at '[1.5, [0.2, 0.3]]'
    plaingrad check model.py:loss --at '{"rate": 1.5, "start": [0.2, 0.3]}'
    plaingrad show  model.py:loss
    plaingrad coverage scipy.linalg
    plaingrad cache

Exit status: 0 done; 1 the derivative was refused, the function failed, or a check did not hold; 2 the command
was wrong.
"""

from plaingrad.cli.command import main

__all__ = ["main"]
