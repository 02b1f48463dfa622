"""What is in use: versions, and which form of the engine's core."""

from __future__ import annotations

import os

from plaingrad.engine import compiled

PACKAGES = ("plaingrad", "numpy", "scipy", "numba")
# Why the slower form of the core is in use, if nobody asked for it, until it has been said.
TO_SAY = [compiled.WHY_NOT] if compiled.core is None and os.environ.get("PLAINGRAD_COMPILED") != "0" else []


def say_form() -> None:
    """Log, once in a process, that the slower form of the core is in use."""
    import logging  # not needed where the core is compiled

    try:
        why = TO_SAY.pop()
    except IndexError:  # another thread has said it
        return
    logging.getLogger("plaingrad").info(
        "the compiled core is not in use: %s; derivatives of ordinary Python take several times longer", why
    )


def info() -> dict[str, str | None]:
    """The versions in use, and whether the compiled core of the engine is.

    Returns:
        By name: "python" (implementation and version), the version of each of plaingrad, NumPy, SciPy and
        Numba (None where it is not installed), and "core": "compiled", or "python" and why.

    Examples:
        >>> import plaingrad
        >>> plaingrad.info()["core"].partition(":")[0] in ("compiled", "python")
        True
    """
    import importlib.metadata  # not needed to import the package
    import platform

    found: dict[str, str | None] = {
        "python": f"{platform.python_implementation()} {platform.python_version()}"
    }
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    found["core"] = "compiled" if compiled.core is not None else f"python: {compiled.WHY_NOT}"
    return found
