"""scipy.special: every ufunc in all its real arguments at the points that its rule names, and the other functions."""

import numpy as np
from scipy import special
from tests.scipy.sweep.harness import Table

from plaingrad import rulebook
from plaingrad.rules.scipy import forms

TABLE = Table(special, "scipy.special")
add, each = TABLE.add, TABLE.each

LOOSE = {"ncfdtrinc": 1e-3}  # SciPy sums this series until its terms are below 1e-4
ENDLESS = ("obl_", "pro_")  # SciPy does not return from some of these in single precision


def points_of(ufunc):
    """Sample points for each argument, from the rule of a ufunc."""
    rule = rulebook.find(ufunc)
    domain = getattr(rule, "domain", None)
    return domain if domain and all(len(points) for points in domain) else None


def unknown_in(ufunc):
    """The arguments in which its derivative is refused."""
    rule = rulebook.find(ufunc)
    several = forms.RESULTS.get(id(ufunc), (rule.partials,))
    return {k for partials in several for k, partial in enumerate(partials) if partial in forms.UNKNOWN}


for name in sorted(special.__all__):
    ufunc = getattr(special, name)
    points = points_of(ufunc) if isinstance(ufunc, np.ufunc) else None
    if points is not None and all(isinstance(p, (int, float)) for one in points for p in one):
        first = [one[len(one) // 2] for one in points]
        whole = [k for k, one in enumerate(points) if all(isinstance(p, int) for p in one)]
        real = [k for k in range(len(first)) if k not in whole]
        known = [k for k in real if k not in unknown_in(ufunc)]
        for real in [real, known] if known != real else [real]:
            if not real:
                continue

            def call(f, x, first=first, real=real):
                arguments = list(first)
                for k, n in enumerate(real):
                    arguments[n] = x[k]
                return f(*arguments)

            label = "" if known == real or not known else "all arguments"
            add(name, call, [first[k] for k in real], label=label, forms=("strided",) if name[:4] in ENDLESS else ("strided", "float32"), step=2e-5, loose=LOOSE.get(name, 1e-4))

X = np.array([0.3, 0.7, 1.2, 2.1])
T = np.cos(np.arange(12.0)).reshape(3, 4)
each("logsumexp softmax log_softmax", lambda f, x: f(x, axis=0), T)
each("logsumexp softmax log_softmax", lambda f, x: f(x), T, label="all", forms=())
add("logsumexp", lambda f, x: f(x, b=x + 2.0, return_sign=True), T, label="b", forms=())
each("jvp yvp ivp kvp", lambda f, x: f(1.3, x, 2), X, forms=())
each("h1vp h2vp", lambda f, x: f(1.3, x), X, forms=())
each("spherical_jn spherical_yn spherical_in spherical_kn", lambda f, x: f(2, x), X)
each("riccati_jn riccati_yn", lambda f, x: f(3, x[0]), X, forms=())
each("sinc diric", lambda f, x: f(x) if f.__name__ == "sinc" else f(x, 5), X)
each("polygamma", lambda f, x: f(2, x), X)
each("multigammaln", lambda f, x: f(x + 3.0, 2), X)
each("comb perm", lambda f, x: f(x + 3.0, x[::-1]), X, forms=())
each("factorial", lambda f, x: f(x[0]), X, forms=())
add("lambertw", lambda f, x: f(x).real, X)
add("ellip_harm", lambda f, x: f(5.0, 8.0, 2, 3, x[0] + 3), X, forms=())
each("eval_legendre eval_hermite", lambda f, x: f(3, x), X, label="degree 3", forms=())
add("sph_harm_y", lambda f, x: f(3, 1, x, x[::-1]), X, forms=())
each("legendre_p assoc_legendre_p", lambda f, x: f(3, *([1] if "assoc" in f.__class__.__name__ or getattr(f, "__name__", "") == "assoc_legendre_p" else []), x * 0.3), X, forms=())
add("zeta", lambda f, x: f(x + 2.0), X, label="Riemann", forms=())
add("bernoulli", lambda f, x: f(4) * x.sum(), X, forms=(), constant=True)
add("softplus", lambda f, x: f(x), X)
each("lpn lqn", lambda f, x: f(3, 0.3 * x[0]), X, forms=())
each("lpmn lqmn", lambda f, x: f(2, 3, 0.3 * x[0]), X, forms=())
each("obl_cv_seq pro_cv_seq", lambda f, x: f(1, 3, x[0]), X, forms=())
each("legendre chebyt chebyu hermite laguerre", lambda f, x: f(3)(x), X, forms=())
each("genlaguerre gegenbauer", lambda f, x: f(3, 0.7)(x), X, forms=())
each("roots_legendre", lambda f, x: f(3)[0] * x[:3], X, forms=(), constant=True)
each("roots_jacobi", lambda f, x: f(3, x[0], x[1]), X, forms=())
each("roots_genlaguerre roots_gegenbauer", lambda f, x: f(3, x[0]), X, forms=())
each("mathieu_even_coef mathieu_odd_coef", lambda f, x: f(2, x[0])[:6], X, forms=())
