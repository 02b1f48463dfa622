"""Compiled functions of single packages, by what they compute: the value is theirs, the derivative that of a formula.

A file a package, whose rules are entered when one of its modules is met. The formula has to give the same value, else
the call is refused.
"""

from plaingrad import rulebook
from plaingrad.rules.packages import (
    bezier,
    gpy,
    hmmlearn,
    mdanalysis,
    pot,
    properscoring,
    pymatgen,
    pywavelets,
    pyxirr,
    slycot,
)


def wait() -> None:
    """Let the rulebook enter these rules when the packages are met."""
    for package in (bezier, gpy, hmmlearn, mdanalysis, pot, properscoring, pymatgen, pywavelets, pyxirr, slycot):
        rulebook.when_met(package.MODULE, package.rules)
    rulebook.when_met(pywavelets.CHECKS, pywavelets.rules_of_checks)
    rulebook.when_met(gpy.COMPILED, gpy.rules_of_compiled)


__all__ = ["bezier", "gpy", "hmmlearn", "mdanalysis", "pot", "properscoring", "pymatgen", "pywavelets", "pyxirr", "slycot", "wait"]
