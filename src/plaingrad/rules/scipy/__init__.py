"""Facts about SciPy's functions, entered when a program that has imported SciPy calls one of them.

Nothing here is imported before that: `waiting` tells the rulebook what to wait for.
"""

from __future__ import annotations

from collections.abc import Iterable

from plaingrad import rulebook
from plaingrad.rulebook import Rule

# Modules of SciPy's that have Python functions with rules of their own; their compiled ones come with `scipy.special`.
PYTHON_MODULES = (
    "scipy.special._basic", "scipy.special._ellip_harm", "scipy.special._lambertw", "scipy.special._logsumexp",
    "scipy.special._multiufuncs", "scipy.special._orthogonal", "scipy.special._spfun_stats",
    "scipy.special._spherical_bessel",
)  # fmt: skip


def rules_of_special() -> Iterable[Rule]:
    """The rules of `scipy.special`; none where SciPy is not installed."""
    try:
        from plaingrad.rules.scipy import special
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "scipy":
            raise
        return ()
    return special.rules()


def wait() -> None:
    """Let the rulebook enter these rules when SciPy is met."""
    rulebook.when_met("scipy.special", rules_of_special, ufuncs=True)
    for module in PYTHON_MODULES:
        rulebook.when_met(module, rules_of_special)
