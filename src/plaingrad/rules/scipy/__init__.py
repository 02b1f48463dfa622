"""Facts about SciPy's functions, entered when a program that has imported SciPy calls one of them.

Nothing here is imported before that: `waiting` tells the rulebook what to wait for.
"""

from __future__ import annotations

import importlib
import importlib.util
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


def rules_of(package: str) -> Iterable[Rule]:
    """The rules in `package` of this folder; none where SciPy is not installed."""
    try:
        return importlib.import_module(f"{__name__}.{package}").rules()  # type: ignore[no-any-return]
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "scipy" or importlib.util.find_spec("scipy") is not None:
            raise
        return ()


# Modules of SciPy's, and the package with the rules of their functions.
PACKAGES = {
    "optimize": tuple(
        f"scipy.optimize._{name}"
        for name in (
            "basinhopping", "cobyla_py", "differentialevolution", "direct_py", "dual_annealing", "isotonic", "lbfgsb_py",
            "linprog", "lsap", "lsq.least_squares", "lsq.lsq_linear", "milp", "minimize", "minpack_py", "nnls", "nonlin",
            "optimize", "qap", "root", "root_scalar", "shgo", "slsqp_py", "tnc", "zeros_py",
        )
    ),
    "integrate": tuple(
        f"scipy.integrate._{name}" for name in ("bvp", "ivp.common", "ivp.ivp", "ivp.rk", "ode", "odepack_py", "quad_vec", "quadpack_py", "quadrature", "tanhsinh")
    ),
    "linalg": tuple([f"scipy.linalg.{module}" for module in (
        "_basic", "_cythonized_array_utils", "_decomp", "_decomp_cholesky", "_decomp_ldl", "_decomp_lu", "_decomp_polar",
        "_decomp_qr", "_decomp_schur", "_decomp_svd", "_decomp_update", "_expm_frechet", "_matfuncs", "_matfuncs_sqrtm", "_misc",
        "_procrustes", "_solvers", "_special_matrices", "blas", "interpolative", "lapack",
    )]),
    "sparse": (
        "scipy.sparse._sparsetools", "scipy.sparse._csparsetools", "scipy.sparse.linalg._dsolve._superlu",
        "scipy.sparse.linalg._dsolve.linsolve", "builtins.SuperLU",
        "scipy.sparse._base", "scipy.sparse._dia", "scipy.sparse._lil",
        *[f"scipy.sparse.csgraph._{name}" for name in (
            "flow", "matching", "min_spanning_tree", "reordering", "shortest_path", "tools", "traversal",
        )],
        *[f"scipy.sparse.linalg._eigen.{name}" for name in ("arpack.arpack", "_svds", "lobpcg.lobpcg")],
        *[f"scipy.sparse.linalg._isolve.{name}" for name in ("iterative", "minres", "lgmres", "_gcrotmk", "tfqmr", "lsqr", "lsmr")],
    ),
    "fft": (
        "scipy.fft._basic", "scipy.fft._realtransforms", "scipy.fft._fftlog", "scipy.fft._pocketfft.basic",
        "scipy.fft._pocketfft.pypocketfft", "scipy.fft._pocketfft.realtransforms", "scipy.fftpack._basic",
        "scipy.fft._duccfft.basic", "scipy.fft._duccfft.pyduccfft", "scipy.fft._duccfft.realtransforms",
        "scipy.fftpack._realtransforms", "scipy.fftpack._pseudo_diffs",
    ),
    "signal": (
        "scipy.signal._sigtools", "scipy.signal._spline", "scipy.signal._peak_finding", "scipy.signal._peak_finding_utils",
        "scipy.signal._signaltools", "scipy.signal._upfirdn", "scipy.signal._spectral_py",
        "scipy.signal._delegators", "scipy.signal._support_alternative_backends", "scipy.signal._short_time_fft",
    ),
    "interpolate": (
        "scipy.interpolate._polyint", "scipy.interpolate._interpolate", "scipy.interpolate._bsplines",
        "scipy.interpolate._cubic", "scipy.interpolate._rgi", "scipy.interpolate._dierckx",
        *[f"scipy.interpolate.{name}" for name in (
            "_fitpack", "_fitpack_py", "_fitpack2", "_fitpack_impl", "_fitpack_repro", "_dfitpack", "dfitpack", "_bspl",
            "_bary_rational", "_interpnd", "interpnd", "_ndgriddata", "_rbf", "_ppoly", "_rbfinterp", "_rbfinterp_np", "_rbfinterp_pythran", "_ndbspline",
        )],
    ),
    "cluster": (
        "scipy.cluster.vq", "scipy.cluster.hierarchy", "scipy.cluster.vq._vq_impl", "scipy.cluster.hierarchy._hierarchy_impl",
        "scipy.cluster._hierarchy", "scipy.cluster._vq", "scipy.cluster._optimal_leaf_ordering",
    ),
    "spatial": (
        "scipy.spatial.distance", "scipy.spatial._kdtree", "scipy.spatial._ckdtree", "scipy.spatial._qhull",
        "scipy.spatial._hausdorff", "scipy.spatial._spherical_voronoi",
        *[f"scipy.spatial.transform._{name}" for name in (
            "rotation", "rotation_cy", "rigid_transform", "rigid_transform_cy", "rotation_spline",
        )],
    ),
    "ndimage": (
        "scipy.ndimage._nd_image", "scipy.ndimage._rank_filter_1d", "scipy.ndimage._filters",
        "scipy.ndimage._interpolation", "scipy.ndimage._support_alternative_backends", "scipy.ndimage._morphology",
    ),
    "stats": tuple([f"scipy.stats.{name}" for name in (
        "_continuous_distns", "_correlation", "_covariance", "_discrete_distns", "_distn_infrastructure",
        "_distribution_infrastructure", "_kde", "_ksstats", "_morestats",
        "_multivariate", "_qmc_cy", "_stats", "_stats_py", "_stats_pythran",
    )]),
}  # fmt: skip


def wait() -> None:
    """Let the rulebook enter these rules when SciPy is met."""
    rulebook.when_met("scipy.special", partial(rules_of, "special"), ufuncs=True)
    for module in PYTHON_MODULES:
        rulebook.when_met(module, partial(rules_of, "special"))
    for package, modules in PACKAGES.items():
        for module in modules:
            wrapped = module.endswith((".blas", ".lapack"))
            rulebook.when_met(module, partial(rules_of, package), ufuncs=wrapped)
