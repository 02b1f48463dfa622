"""Facts about SciPy's functions, entered when a program that has imported SciPy calls one of them.

Nothing here is imported before that: `waiting` tells the rulebook what to wait for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import partial

from plaingrad import rulebook
from plaingrad.rulebook import Rule

# Modules of SciPy's that have Python functions with rules of their own; their compiled ones come with `scipy.special`.
PYTHON_MODULES = (
    "scipy.special._basic", "scipy.special._ellip_harm", "scipy.special._lambertw", "scipy.special._logsumexp",
    "scipy.special._multiufuncs", "scipy.special._orthogonal", "scipy.special._spfun_stats",
    "scipy.special._spherical_bessel",
)  # fmt: skip

# Modules of solvers, whose rules are about what they solve.
SOLVERS = {
    "scipy.optimize": (
        "_basinhopping", "_cobyla_py", "_differentialevolution", "_direct_py", "_dual_annealing", "_isotonic",
        "_lbfgsb_py", "_linprog", "_lsap", "_lsq.least_squares", "_lsq.lsq_linear", "_milp", "_minimize", "_minpack_py",
        "_nnls", "_nonlin", "_optimize", "_qap", "_root", "_root_scalar", "_shgo", "_slsqp_py", "_tnc", "_zeros_py",
    ),
}  # fmt: skip


def rules_of_special() -> Iterable[Rule]:
    """The rules of `scipy.special`; none where SciPy is not installed."""
    try:
        from plaingrad.rules.scipy import special
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "scipy":
            raise
        return ()
    return special.rules()


def rules_of_optimize() -> Iterable[Rule]:
    """The rules of `scipy.optimize`, which is imported."""
    from plaingrad.rules.scipy import optimize

    return optimize.rules()


# Modules of SciPy's, and the package with the rules of their functions.
PACKAGES = {
    "sparse": (
        "scipy.sparse._sparsetools", "scipy.sparse._csparsetools", "scipy.sparse.linalg._dsolve._superlu",
        "scipy.sparse.linalg._dsolve.linsolve", "builtins.SuperLU",
        "scipy.sparse._base", "scipy.sparse._lil",
    ),
}  # fmt: skip


def rules_of(package: str) -> Iterable[Rule]:
    """The rules in `package` of this folder; the modules that they are about are there."""
    return importlib.import_module(f"{__name__}.{package}").rules()  # type: ignore[no-any-return]


def wait() -> None:
    """Let the rulebook enter these rules when SciPy is met."""
    rulebook.when_met("scipy.special", rules_of_special, ufuncs=True)
    for module in PYTHON_MODULES:
        rulebook.when_met(module, rules_of_special)
    for module in SOLVERS["scipy.optimize"]:
        rulebook.when_met(f"scipy.optimize.{module}", rules_of_optimize)
    for package, modules in PACKAGES.items():
        for module in modules:
            rulebook.when_met(module, partial(rules_of, package))
