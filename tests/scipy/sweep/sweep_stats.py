"""scipy.stats: every distribution in x, shapes, loc and scale; statistics and tests."""

import numpy as np
from scipy import stats
from scipy.stats import mstats, qmc
from scipy.stats._distr_params import distcont, distdiscrete
from tests.scipy.sweep.harness import Table

TABLE = Table(stats, "scipy.stats")
MASKED = Table(mstats, "scipy.stats.mstats")
QMC = Table(qmc, "scipy.stats.qmc")
add, each = TABLE.add, TABLE.each
X = np.array([0.9, -0.4, 1.7, 0.33, 2.2, -1.1, 0.6, 1.25])
Y = np.cos(np.arange(8.0) * 1.7) + 0.3 * X
T = np.cos(1.0 + np.arange(24.0) ** 1.3).reshape(8, 3)
F = np.array([4.0, 7.0, 3.0, 6.0])
FORMS = ("strided", "reversed", "float32")
DENSITIES = "pdf logpdf cdf logcdf sf logsf".split()
LATE: set = set()  # (distribution, method) whose derivative takes minutes
SLOW = set("studentized_range levy_stable kstwo ksone gausshyper genhyperbolic geninvgauss kappa4 ncf nct".split())


def shapes_of(numbers):
    return [float(number) for number in numbers]


def has_formula(distribution, method):
    """Whether the distribution has its own formula for it: by quadrature and root finding it takes a second a call."""
    base = stats.rv_continuous
    names = {"pdf": ["_pdf", "_logpdf"], "logpdf": ["_pdf", "_logpdf"], "isf": ["_isf", "_ppf"], "median": ["_ppf"], "interval": ["_ppf"],
             "cdf": ["_cdf"], "logcdf": ["_cdf"], "sf": ["_sf", "_cdf"], "logsf": ["_sf", "_cdf"], "mean": ["_stats"], "var": ["_stats"],
             "std": ["_stats"], "stats": ["_stats"], "moment": ["_stats"]}.get(method, [f"_{method}"])  # fmt: skip
    return any(getattr(type(distribution), name, None) is not getattr(base, name, None) for name in names)


def enter(name, numbers):
    """A continuous distribution in its quantiles and all parameters."""
    distribution = getattr(stats, name, None)
    if distribution is None or name in ("levy_stable", "irwinhall"):  # a minute a call; its shape is a count
        return
    n = len(numbers)
    forms = ()

    def add(name, *args, **options):
        if has_formula(distribution, name.rpartition(".")[2]) or name.endswith((".nnlf", ".support")):
            TABLE.add(name, *args, **options)

    shapes = shapes_of(numbers)
    try:
        middle = [float(q) for q in distribution.ppf([0.35, 0.6], *shapes)]
    except Exception:
        return
    for method in DENSITIES:
        point = [q * 1.3 + 0.2 for q in middle] + shapes + [0.2, 1.3]
        add(f"{name}.{method}", lambda f, x, n=n: f(x[:2], *x[2 : 2 + n], loc=x[2 + n], scale=x[3 + n]), point, forms=forms, step=2e-5, loose=1e-4, nested=name not in SLOW and method in ("pdf", "logpdf", "cdf"))
    for method in ("ppf", "isf"):
        add(f"{name}.{method}", lambda f, x, n=n: f(x[:2], *x[2 : 2 + n], loc=x[2 + n], scale=x[3 + n]), [0.35, 0.6, *shapes, 0.2, 1.3], forms=forms, step=2e-5, loose=1e-4, nested=False)
    for method in ("mean", "var", "std", "median", "entropy"):
        if name in SLOW and method in ("mean", "var", "std"):
            continue
        add(f"{name}.{method}", lambda f, x, n=n: f(*x[:n], loc=x[n], scale=x[n + 1]), [*shapes, 0.2, 1.3], forms=forms, step=2e-5, loose=1e-4, nested=False)
    if name in SLOW or name == "johnsonsu":
        return
    step = 1e-2 if (name, *shapes) == ("genextreme", 0.0) else 2e-5  # SciPy's skewness is constant in a neighbourhood
    add(f"{name}.stats", lambda f, x, n=n: f(*x[:n], loc=x[n], scale=x[n + 1], moments="mvsk"), [*shapes, 0.2, 1.3], forms=forms, step=step, loose=1e-4, nested=False)
    for method in ("interval", "moment"):
        first = {"interval": [0.5], "moment": [2]}[method]
        add(f"{name}.{method}", lambda f, x, n=n, first=first: f(*first, *x[:n], loc=x[n], scale=x[n + 1]), [*shapes, 0.2, 1.3], forms=forms, step=2e-5, loose=1e-4, nested=False, late=(name, method) in LATE)
    add(f"{name}.nnlf", lambda f, x, n=n, q=np.array(middle): f(x, q * 1.3 + 0.2), [*shapes, 0.2, 1.3], forms=forms, step=2e-5, loose=1e-4, nested=False)


def enter_discrete(name, numbers):
    """A discrete distribution in the parameters that are no counts."""
    distribution = getattr(stats, name, None) if isinstance(name, str) else None
    if distribution is None or name in ("hypergeom", "nhypergeom", "randint", "poisson_binom"):
        return
    counts = {"boltzmann": (1,), "nchypergeom_fisher": (0, 1, 2), "nchypergeom_wallenius": (0, 1, 2)}.get(name, (0,) if name in ("betabinom", "betanbinom", "binom") else ())
    real = [k for k in range(len(numbers)) if k not in counts]
    middle = int(distribution.ppf(0.6, *numbers))

    def arguments(x):
        found = list(numbers)
        for place, k in enumerate(real):
            found[k] = x[place]
        return found

    for method in ("pmf", "logpmf", "cdf", "sf", "logcdf"):
        add(f"{name}.{method}", lambda f, x: f(middle, *arguments(x)), [float(numbers[k]) for k in real], forms=(), step=2e-5, loose=1e-4, nested=False)
    for method in ("mean", "var", "entropy"):
        add(f"{name}.{method}", lambda f, x: f(*arguments(x)), [float(numbers[k]) for k in real], forms=(), step=2e-5, loose=1e-4, nested=False)


SWITCHES = [("genextreme", (0.0,)), ("genpareto", (0.0,)), ("skewnorm", (0.0,)), ("genlogistic", (1.0,)), ("johnsonsu", (0.0, 1.0))]
for name, numbers in [*distcont, *SWITCHES]:
    enter(name, numbers)
for name, numbers in distdiscrete:
    enter_discrete(name, numbers)

M = np.array([0.3, -0.2])
C = np.array([1.3, 0.4, 0.9])


def covariance(x):
    return np.array([[1.0, 0.0], [0.0, 0.0]]) * x[0] + np.array([[0.0, 1.0], [1.0, 0.0]]) * x[1] + np.array([[0.0, 0.0], [0.0, 1.0]]) * x[2]


each("multivariate_normal.pdf multivariate_normal.logpdf", lambda f, x: f(x[:2], x[2:4], covariance(x[4:])), [0.5, 0.1, *M, *C], forms=())
add("multivariate_normal.cdf", lambda f, x: f(x[:2], x[2:4], covariance(x[4:])), [0.5, 0.1, *M, *C], forms=(), loose=1e-3, nested=False)
add("multivariate_normal.entropy", lambda f, x: f(M, covariance(x)), C, forms=())
each("multivariate_t.pdf multivariate_t.logpdf", lambda f, x: f(x[:2], x[2:4], covariance(x[4:7]), x[7]), [0.5, 0.1, *M, *C, 3.5], forms=())
each("dirichlet.pdf dirichlet.logpdf", lambda f, x: f([0.2, 0.3, 0.5], x), [1.3, 2.1, 0.8], forms=())
each("dirichlet.mean dirichlet.var dirichlet.entropy", lambda f, x: f(x), [1.3, 2.1, 0.8], forms=())
each("wishart.logpdf invwishart.logpdf", lambda f, x: f(covariance(x[3:6]), x[6], covariance(x[:3])), [*C, 1.1, 0.2, 0.8, 3.4], forms=())
add("matrix_normal.logpdf", lambda f, x: f(np.eye(2) * 0.3, rowcov=covariance(x), colcov=covariance(x * x)), C, forms=())
each("multinomial.pmf multinomial.logpmf", lambda f, x: f([1, 2, 3], 6, x / x.sum()), C, forms=())
add("dirichlet_multinomial.logpmf", lambda f, x: f([1, 2, 3], x, 6), C, forms=())
add("multivariate_hypergeom.mean", lambda f, x: f([3, 4], 2) * x[:2], C, forms=(), constant=True)
each("vonmises_fisher.logpdf", lambda f, x: f(np.array([0.6, 0.8]), np.array([1.0, 0.0]), x[0]), C, forms=())
add("normal_inverse_gamma.logpdf", lambda f, x: f(0.3, 1.2, x[0], x[1], x[2], 1.4), C, forms=())
for method in ("pdf", "logpdf", "cdf", "logcdf", "ccdf", "icdf"):
    add("Normal", lambda f, x, method=method: getattr(f(mu=x[0], sigma=x[1]), method)(0.4 if method == "icdf" else 0.7), C, label=method, forms=())
for method in ("mean", "variance", "entropy", "median", "mode", "skewness"):
    add("Normal", lambda f, x, method=method: getattr(f(mu=x[0], sigma=x[1]), method)() + x[0], C, label=method, forms=())
add("Uniform", lambda f, x: f(a=x[1], b=x[0]).pdf(0.7), C, forms=())
add("make_distribution", lambda f, x: f(stats.gamma)(a=x[0]).pdf(0.7), C, forms=())
add("Mixture", lambda f, x: f([stats.Normal(mu=x[0]), stats.Normal(mu=x[1])], weights=[0.4, 0.6]).pdf(0.3), C, forms=())
each("truncate", lambda f, x: f(stats.Normal(mu=x[0], sigma=x[1]), -1.0, 2.0).pdf(0.3), C, forms=())
for name in "exp log abs".split():
    add(name, lambda f, x: f(stats.Uniform(a=x[1], b=x[0])).mean(), C, forms=())
add("gaussian_kde", lambda f, x: f(x)(np.array([0.1, 0.8])), X, forms=())
add("gaussian_kde", lambda f, x: f(X)(x), Y, label="queries", forms=())
add("gaussian_kde", lambda f, x: f(X).integrate_box_1d(x[0], x[1] + 3), Y, label="integral", forms=())

# statistics
each("gmean hmean", lambda f, x: f(x + 3.0), X, forms=FORMS)
add("pmean", lambda f, x: f(x + 3.0, 1.7), X, forms=FORMS)
each("tmean tvar tstd tsem skew kurtosis sem variation kstat kstatvar zscore gzscore iqr moment circmean circvar circstd trim_mean median_abs_deviation gstd differential_entropy entropy describe obrientransform tmin tmax mode", lambda f, x: f(x + 3.0, *([0.2] if f.__name__ == "trim_mean" else [2] if f.__name__ == "moment" else [])), X, forms=FORMS, loose=1e-4)
each("gmean hmean tmean tvar skew kurtosis sem variation zscore iqr moment circmean median_abs_deviation differential_entropy", lambda f, x: f(x + 3.0, axis=0, **({"order": 2} if False else {})), T, label="axis", forms=("fortran",))
each("skew kurtosis", lambda f, x: f(x, bias=False), X, label="unbiased", forms=())
each("zmap", lambda f, x: f(x, x * x), X, forms=())
each("expectile", lambda f, x: f(x, 0.3), X, forms=())
each("quantile", lambda f, x: f(x, [0.2, 0.55]), X, forms=())
each("scoreatpercentile", lambda f, x: f(x, 30.0), X, forms=())
each("percentileofscore", lambda f, x: f(X, x[0]) * x[1], X, forms=(), constant=True)
each("lmoment", lambda f, x: f(x), X, forms=())
each("trimboth trim1", lambda f, x: f(x, 0.2), X, forms=())
add("sigmaclip", lambda f, x: f(x)[0], X, forms=())
add("directional_stats", lambda f, x: f(x).mean_direction, T, forms=())
each("cumfreq relfreq", lambda f, x: f(x, 4)[0] * x[0], X, forms=(), constant=True)
add("binned_statistic", lambda f, x: f(X, x, "mean", 3)[0], Y, forms=())
add("binned_statistic_2d", lambda f, x: f(X, Y, x, "sum", 2)[0], Y, forms=())
add("binned_statistic_dd", lambda f, x: f(T, x, "sum", 2)[0], Y, forms=())
each("boxcox_llf yeojohnson_llf", lambda f, x: f(0.3 + 0.1 * x[0], abs(x) + 1.0), X, forms=())
each("boxcox yeojohnson", lambda f, x: f(abs(x) + 1.0, 0.4), X, forms=())
each("boxcox_normmax yeojohnson_normmax", lambda f, x: f(abs(x) + 1.0), X, forms=(), loose=1e-3, nested=False)
add("cov", lambda f, x: f(x), X)
each("rankdata", lambda f, x: x * f(x), X, forms=(), constant=True)
each("energy_distance wasserstein_distance", lambda f, x: f(x, Y), X, forms=())
add("wasserstein_distance_nd", lambda f, x: f(x, T[::-1] + 0.5), T, forms=())
add("ecdf", lambda f, x: f(X).cdf.evaluate(x) * x, Y, forms=(), constant=True)
each("bayes_mvs mvsdist", lambda f, x: [d.mean() for d in f(x)] if f.__name__ == "mvsdist" else [r.statistic for r in f(x)], X, forms=())
each("probplot", lambda f, x: f(x)[0][1], X, forms=())
each("ppcc_max", lambda f, x: f(abs(x) + 0.1) * 1.0, X, forms=(), nested=False)
each("boxcox_normplot ppcc_plot yeojohnson_normplot", lambda f, x: f(abs(x) + 1.0, 0.2, 0.8, N=3)[1], X, forms=(), nested=False)

# tests: statistic and p-value
def result(r):
    return [r.statistic, r.pvalue] if hasattr(r, "pvalue") else list(r)[:2]


each("ttest_1samp", lambda f, x: result(f(x, 0.3)), X, forms=FORMS)
each("ttest_ind ttest_rel pearsonr spearmanr kendalltau ks_2samp mannwhitneyu wilcoxon ranksums bartlett levene fligner ansari mood kruskal f_oneway brunnermunzel cramervonmises_2samp epps_singleton_2samp median_test alexandergovern weightedtau siegelslopes theilslopes somersd anderson_ksamp bws_test chatterjeexi",
     lambda f, x: result(f(*([[x, Y]] if f.__name__ == "anderson_ksamp" else [x, Y]))), X, forms=(), loose=1e-4)
each("ttest_ind", lambda f, x: result(f(x, Y, equal_var=False)), X, label="Welch", forms=())
each("f_oneway kruskal", lambda f, x: result(f(*x.T)), T, label="three", forms=())
each("friedmanchisquare", lambda f, x: result(f(*x.T)), T, forms=())
each("tukey_hsd dunnett", lambda f, x: f(x, Y).statistic, X, forms=(), nested=False)
add("ttest_ind_from_stats", lambda f, x: result(f(x[0], x[4], 8, x[1] * 0, x[2], 9)), X, forms=())
each("skewtest kurtosistest normaltest jarque_bera shapiro", lambda f, x: result(f(np.concatenate([x, x * 1.3 + 0.2, x * x]))), X, forms=(), loose=1e-4)
add("anderson", lambda f, x: f(x).statistic, X, forms=())
each("kstest ks_1samp cramervonmises", lambda f, x: result(f(x, *(["norm"] if f.__name__ != "ks_1samp" else [stats.norm.cdf]))), X, forms=(), loose=1e-4)
each("chisquare power_divergence", lambda f, x: result(f(x * 20 / x.sum(), F)), F + 0.3, forms=())
each("chi2_contingency", lambda f, x: result(f(x.reshape(2, 2))), F + 0.3, forms=())
each("fisher_exact barnard_exact boschloo_exact", lambda f, x: x * result(f([[4, 7], [3, 6]]))[1], F, forms=(), constant=True)
add("linregress", lambda f, x: list(f(x, Y))[:5], X, forms=())
each("pointbiserialr", lambda f, x: result(f([0, 1, 1, 1, 0, 0, 1, 1], x)), X, forms=())
add("combine_pvalues", lambda f, x: result(f(x)), [0.2, 0.4, 0.7], forms=())
add("combine_pvalues", lambda f, x: result(f(x, method="stouffer", weights=[1, 2, 3])), [0.2, 0.4, 0.7], label="stouffer", forms=())
add("false_discovery_control", lambda f, x: f(x), [0.2, 0.4, 0.07], forms=())
add("bootstrap", lambda f, x: f((x,), np.mean, n_resamples=9, rng=1).standard_error if "rng" in f.__wrapped__.__code__.co_varnames else f((x,), np.mean, n_resamples=9, random_state=1).standard_error, X, label="fixed draws", forms=(), nested=False) if hasattr(stats.bootstrap, "__wrapped__") else None
add("norm.fit", lambda f, x: f(x), X, forms=())
each("expon.fit gamma.fit", lambda f, x: f(abs(x) + 0.1, floc=0), X, forms=(), loose=1e-3, nested=False)
add("norm.expect", lambda f, x: f(lambda t: t * t, loc=x[0], scale=1.3), X, forms=(), nested=False)
add("norm.rvs", lambda f, x: f(loc=x[0], scale=x[2], size=3, random_state=1), X, forms=())
add("gamma.rvs", lambda f, x: f(2.1, loc=x[0], scale=x[2], size=3, random_state=1), X, forms=())
add("norm", lambda f, x: f(loc=x[0], scale=x[2]).logpdf(x), X, label="frozen", forms=())
add("rv_histogram", lambda f, x: f((F, np.arange(5.0))).pdf(x), [0.3, 1.2], forms=())
MASK = X > 2.0
MASKED.each("gmean hmean skew kurtosis sem variation trim trimmed_mean trimmed_std trimmed_var winsorize", lambda f, x: np.ma.filled(f(np.ma.array(x + 3.0, mask=MASK)), 0.0), X, forms=())
MASKED.each("ttest_1samp", lambda f, x: result(f(np.ma.array(x, mask=MASK), 0.3)), X, forms=())
MASKED.each("ttest_ind ttest_rel pearsonr spearmanr linregress mannwhitneyu ks_2samp", lambda f, x: [np.ma.filled(part, 0.0) for part in list(f(np.ma.array(x, mask=MASK), Y))[:2]], X, forms=())
MASKED.each("hdquantiles mquantiles hdmedian", lambda f, x: np.ma.filled(f(x), 0.0), X, forms=())
QMC.each("discrepancy", lambda f, x: f(x), (T + 1.01) / 2.1, forms=())
QMC.each("scale", lambda f, x: f((x + 1.01) / 2.1, [0.0, 1.0, 2.0], [3.0, 4.0, 5.0]), T, forms=())
QMC.each("geometric_discrepancy", lambda f, x: f((x + 1.01) / 2.1), T, forms=())
QMC.each("MultivariateNormalQMC", lambda f, x: f(x[:2], seed=1).random(2), X, forms=())
QMC.each("update_discrepancy", lambda f, x: f(x[0], x[1:], 0.3), (T + 1.01) / 2.1, forms=())
TABLES = (TABLE, MASKED, QMC)
