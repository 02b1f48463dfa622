"""Facts about each version of CPython; the only place that asks which one is running."""

import sys

from plaingrad.critical import imported
from plaingrad.rewrite.versions.facts import Version

SUPPORTED = ("3.11", "3.12", "3.13", "3.14", "3.15")


def running() -> Version:
    """The facts of the CPython that runs this.

    Raises:
        UnsupportedPythonError: for another implementation or a version that nobody has described.
    """
    name = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if sys.implementation.name != "cpython" or name not in SUPPORTED:
        from plaingrad.errors import UnsupportedPythonError

        raise UnsupportedPythonError(
            f"plaingrad rewrites the bytecode of CPython {', '.join(SUPPORTED)}; "
            f"this is {sys.implementation.name} {name}."
        )
    return imported(f"{__name__}.py{name.replace('.', '')}").VERSION
