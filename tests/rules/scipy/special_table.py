"""What the functions of scipy.special are in mpmath, and random arguments for them."""

import mpmath as mp
import numpy as np

Q = mp.mpf


def U(low, high):
    """Uniform."""
    return lambda rng: float(rng.uniform(low, high))


def L(low, high):
    """Uniform in the logarithm."""
    return lambda rng: float(np.exp(rng.uniform(np.log(low), np.log(high))))


def N(low, high):
    """A whole number, which has no tangent."""
    return lambda rng: int(rng.integers(low, high + 1))


def C(low, high, wide=3.0):
    """Complex, of a size from `low` to `high`, at an angle up to `wide`."""
    return lambda rng: complex(L(low, high)(rng) * np.exp(1j * rng.uniform(-wide, wide)))


def regular_beta(a, b, x):
    return mp.betainc(a, b, 0, x, regularized=True)


def regular_gamma(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def normal(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def student(v, t):
    tail = mp.betainc(v / 2, Q("0.5"), 0, v / (v + t * t), regularized=True) / 2
    return tail if t < 0 else 1 - tail


def fisher(a, b, x):
    return regular_beta(a / 2, b / 2, a * x / (b + a * x))


def chi_mixture(x, df, nc):
    return mp.nsum(lambda j: mp.exp(-nc / 2) * (nc / 2) ** j / mp.factorial(j) * regular_gamma(df / 2 + j, x / 2), [0, 80])


def fisher_mixture(a, b, nc, x):
    y = a * x / (b + a * x)
    return sum(mp.exp(-nc / 2) * (nc / 2) ** j / mp.factorial(j) * regular_beta(a / 2 + j, b / 2, y) for j in range(70))


def student_mixture(v, d, t):
    def of_scale(s):
        density = 2 * (v / 2) ** (v / 2) / mp.gamma(v / 2) * s ** (v - 1) * mp.exp(-v * s * s / 2)
        return normal(t * s - d) * density

    return mp.quad(of_scale, [0, 0.5, 1, 1.5, 2, 4, 12, 40])


def fresnel(part):
    return lambda x: part(x)


def sphere(bessel):
    return lambda n, x: mp.sqrt(mp.pi / (2 * x)) * bessel(n + Q("0.5"), x)


def kolmogorov(x):
    return 2 * sum((-1) ** (k - 1) * mp.exp(-2 * k * k * x * x) for k in range(1, 400))


def wright(a, b, x):
    return mp.nsum(lambda k: x**k / mp.factorial(k) * mp.rgamma(a * k + b), [0, 150])


def owens(h, a):
    return mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi)


def voigt(x, s, g):
    z = (x + 1j * g) / (s * mp.sqrt(2))
    return mp.re(mp.exp(-z * z) * mp.erfc(-1j * z)) / (s * mp.sqrt(2 * mp.pi))


def box(x, p):
    return (x**p - 1) / p


def jacobi_by_series(n, a, b, x):
    return mp.binomial(n + a, n) * mp.hyp2f1(-n, n + a + b + 1, a + 1, (1 - x) / 2)


# name: (the function in mpmath, arguments, relative accuracy)
REAL = {
    "gamma": (mp.gamma, [U(-5, 30)]), "rgamma": (mp.rgamma, [U(-5, 30)]), "psi": (mp.psi0 if hasattr(mp, "psi0") else mp.digamma, [U(-5, 30)]),
    "gammaln": (lambda x: mp.log(abs(mp.gamma(x))), [U(-5, 60)]), "loggamma": (mp.loggamma, [L(0.01, 1e3)]),
    "beta": (mp.beta, [L(0.01, 100), L(0.01, 100)]), "betaln": (lambda a, b: mp.log(mp.beta(a, b)), [L(0.01, 1e5), L(0.01, 1e3)]),
    "poch": (mp.rf, [U(-4, 20), U(0.1, 6)]), "binom": (mp.binomial, [U(-4, 30), U(0.1, 6)]),
    "gammainc": (regular_gamma, [L(0.01, 300), L(0.01, 300)]),
    "gammaincc": (lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True), [L(0.01, 300), L(0.01, 300)]),
    "betainc": (regular_beta, [L(0.05, 60), L(0.05, 60), U(0.01, 0.99)]),
    "betaincc": (lambda a, b, x: mp.betainc(a, b, x, 1, regularized=True), [L(0.05, 60), L(0.05, 60), U(0.01, 0.99)]),
    "erf": (mp.erf, [U(-5, 5)]), "erfc": (mp.erfc, [U(-5, 20)]), "erfi": (mp.erfi, [U(-5, 5)]),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), [U(-5, 50)]), "erfinv": (mp.erfinv, [U(-0.99, 0.99)]),
    "dawsn": (lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), [U(-20, 20)]),
    "ndtr": (normal, [U(-20, 8)]), "log_ndtr": (lambda x: mp.log(normal(x)), [U(-60, 8)]),
    "ndtri": (lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), [U(0.01, 0.99)]),
    "owens_t": (owens, [U(-4, 4), U(-4, 4)]), "voigt_profile": (voigt, [U(-6, 6), L(0.2, 4), L(0.05, 4)]),
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), [U(-40, 40)]), "logit": (lambda p: mp.log(p / (1 - p)), [U(0.001, 0.999)]),
    "log_expit": (lambda x: -mp.log1p(mp.exp(-x)), [U(-40, 40)]), "exprel": (lambda x: mp.expm1(x) / x, [U(-30, 30)]),
    "exp2": (lambda x: Q(2) ** x, [U(-9, 9)]), "exp10": (lambda x: Q(10) ** x, [U(-9, 9)]), "expm1": (mp.expm1, [U(-9, 9)]),
    "log1p": (mp.log1p, [U(-0.99, 9)]), "cosm1": (lambda x: mp.cos(x) - 1, [U(-9, 9)]), "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), [U(-9, 9)]),
    "sindg": (lambda x: mp.sin(x * mp.pi / 180), [U(-400, 400)]), "cosdg": (lambda x: mp.cos(x * mp.pi / 180), [U(-400, 400)]),
    "tandg": (lambda x: mp.tan(x * mp.pi / 180), [U(-80, 80)]), "cotdg": (lambda x: mp.cot(x * mp.pi / 180), [U(5, 175)]),
    "xlogy": (lambda x, y: x * mp.log(y), [U(-3, 3), L(0.01, 9)]), "xlog1py": (lambda x, y: x * mp.log1p(y), [U(-3, 3), L(0.01, 9)]),
    "powm1": (lambda x, y: x**y - 1, [L(0.1, 9), U(-3, 3)]), "boxcox": (box, [L(0.01, 90), U(-3, 3)]),
    "boxcox1p": (lambda x, p: box(1 + x, p), [L(0.01, 90), U(-3, 3)]),
    "inv_boxcox": (lambda y, p: (p * y + 1) ** (1 / p), [L(0.01, 3), U(0.01, 3)]),
    "inv_boxcox1p": (lambda y, p: (p * y + 1) ** (1 / p) - 1, [L(0.01, 3), U(0.01, 3)]),
    "entr": (lambda x: -x * mp.log(x), [L(0.01, 9)]), "rel_entr": (lambda x, y: x * mp.log(x / y), [L(0.01, 9), L(0.01, 9)]),
    "kl_div": (lambda x, y: x * mp.log(x / y) - x + y, [L(0.01, 9), L(0.01, 9)]),
    "pseudo_huber": (lambda d, r: d * d * (mp.sqrt(1 + (r / d) ** 2) - 1), [L(0.01, 9), U(-5, 5)]),
    "wrightomega": (lambda x: mp.lambertw(mp.exp(x)).real, [U(-9, 20)]),
    "exp1": (mp.e1, [L(0.01, 60)]), "expi": (mp.ei, [U(-9, 30)]), "expn": (mp.expint, [N(0, 6), L(0.01, 30)]),
    "spence": (lambda x: mp.re(mp.polylog(2, 1 - x)), [L(0.01, 20)]),
    "zetac": (lambda s: mp.zeta(s) - 1, [U(1.2, 30)]),
    "ellipk": (mp.ellipk, [U(-9, 0.999)]), "ellipe": (mp.ellipe, [U(-9, 0.999)]), "ellipkm1": (lambda p: mp.ellipk(1 - p), [L(1e-9, 3)]),
    "ellipkinc": (mp.ellipf, [U(-9, 9), U(-3, 0.95)]), "ellipeinc": (mp.ellipe, [U(-9, 9), U(-3, 0.95)]),
    "elliprc": (mp.elliprc, [L(0.01, 30), L(0.01, 30)]), "elliprf": (mp.elliprf, [L(0.01, 30)] * 3), "elliprg": (mp.elliprg, [L(0.01, 30)] * 3),
    "elliprd": (mp.elliprd, [L(0.01, 30)] * 3), "elliprj": (mp.elliprj, [L(0.05, 30)] * 4), "agm": (mp.agm, [L(0.01, 30), L(0.01, 30)]),
    "j0": (mp.j0, [U(-40, 40)]), "j1": (mp.j1, [U(-40, 40)]), "y0": (lambda x: mp.bessely(0, x), [L(0.01, 40)]), "y1": (lambda x: mp.bessely(1, x), [L(0.01, 40)]),
    "i0": (lambda x: mp.besseli(0, x), [U(-40, 40)]), "i1": (lambda x: mp.besseli(1, x), [U(-40, 40)]),
    "k0": (lambda x: mp.besselk(0, x), [L(0.01, 40)]), "k1": (lambda x: mp.besselk(1, x), [L(0.01, 40)]),
    "i0e": (lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), [L(0.01, 1e5)]), "i1e": (lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), [L(0.01, 1e5)]),
    "k0e": (lambda x: mp.exp(x) * mp.besselk(0, x), [L(0.01, 1e5)]), "k1e": (lambda x: mp.exp(x) * mp.besselk(1, x), [L(0.01, 1e5)]),
    "jv": (mp.besselj, [U(-3, 40), L(0.01, 90)]), "yv": (mp.bessely, [U(-3, 40), L(0.01, 90)]), "iv": (mp.besseli, [U(-3, 40), L(0.01, 90)]),
    "kv": (mp.besselk, [U(-3, 40), L(0.01, 90)]), "ive": (lambda v, x: mp.exp(-x) * mp.besseli(v, x), [U(-3, 40), L(0.01, 90)]),
    "kve": (lambda v, x: mp.exp(x) * mp.besselk(v, x), [U(-3, 40), L(0.01, 90)]),
    "yn": (mp.bessely, [N(0, 6), L(0.01, 40)]), "kn": (mp.besselk, [N(0, 6), L(0.01, 40)]),
    "_spherical_jn": (sphere(mp.besselj), [N(0, 6), L(0.1, 40)]), "_spherical_yn": (sphere(mp.bessely), [N(0, 6), L(0.1, 40)]),
    "_spherical_in": (sphere(mp.besseli), [N(0, 6), L(0.1, 40)]), "_spherical_kn": (sphere(mp.besselk), [N(0, 6), L(0.1, 40)]),
    "ber": (lambda x: mp.ber(0, x), [U(-9, 9)]), "bei": (lambda x: mp.bei(0, x), [U(-9, 9)]),
    "ker": (lambda x: mp.ker(0, x), [L(0.1, 9)]), "kei": (lambda x: mp.kei(0, x), [L(0.1, 9)]),
    "struve": (mp.struveh, [U(0, 6), L(0.1, 40)]), "modstruve": (mp.struvel, [U(0, 6), L(0.1, 40)]),
    "hyp0f1": (mp.hyp0f1, [U(0.2, 6), U(-9, 30)]), "hyp1f1": (mp.hyp1f1, [U(0.2, 6), U(0.2, 6), U(-12, 12)]),
    "hyp2f1": (mp.hyp2f1, [U(0.2, 3), U(0.2, 3), U(3.2, 6), U(-4, 0.8)]), "hyperu": (mp.hyperu, [U(0.2, 6), U(-2, 3), L(0.1, 20)]),
    "wright_bessel": (wright, [U(0.1, 3), U(0.1, 3), L(0.1, 10)]),
    "eval_legendre": (mp.legendre, [U(0.3, 6), U(-0.8, 0.95)]), "eval_chebyt": (mp.chebyt, [U(0.3, 6), U(-0.8, 0.95)]),
    "eval_chebyu": (mp.chebyu, [U(0.3, 6), U(-0.8, 0.95)]), "eval_gegenbauer": (mp.gegenbauer, [U(0.3, 6), U(0.3, 3), U(-0.8, 0.95)]),
    "eval_jacobi": (jacobi_by_series, [U(0.3, 6), U(0.3, 3), U(0.3, 3), U(-0.8, 0.95)]),
    "eval_genlaguerre": (mp.laguerre, [U(0.3, 6), U(0.3, 3), U(0.1, 9)]), "eval_laguerre": (lambda n, x: mp.laguerre(n, 0, x), [U(0.3, 6), U(0.1, 9)]),
    "eval_hermite": (mp.hermite, [N(0, 6), U(-3, 3)]), "lpmv": (lambda m, v, x: mp.legenp(v, m, x), [N(0, 3), U(3.2, 8), U(-0.8, 0.95)]),
    "chdtr": (lambda v, x: regular_gamma(v / 2, x / 2), [L(0.1, 100), L(0.1, 100)]),
    "gdtr": (lambda a, b, x: regular_gamma(b, a * x), [L(0.1, 10)] * 3), "fdtr": (fisher, [L(0.2, 60), L(0.2, 60), L(0.1, 9)]),
    "stdtr": (student, [L(0.3, 300), U(-9, 9)]), "chndtr": (chi_mixture, [L(0.3, 20), L(0.3, 9), L(0.1, 20)]),
    "ncfdtr": (fisher_mixture, [L(0.5, 9), L(0.5, 9), L(0.1, 9), L(0.2, 6)]),
    "nctdtr": (student_mixture, [U(1, 20), U(-2, 3), U(-3, 5)]), "kolmogorov": (kolmogorov, [U(0.3, 2.5)]),
    "pdtr": (lambda k, m: mp.gammainc(k + 1, m, mp.inf, regularized=True), [N(0, 6), L(0.1, 9)]),
    "bdtr": (lambda k, n, p: regular_beta(n - k, k + 1, 1 - p), [N(0, 6), N(7, 12), U(0.01, 0.99)]),
    "nbdtr": (lambda k, n, p: regular_beta(n, k + 1, p), [N(0, 6), N(1, 12), U(0.01, 0.99)]),
    "_zeta": (mp.zeta, [U(1.2, 30), L(0.05, 90)]), "_riemann_zeta": (mp.zeta, [U(-12, 30)]),
}  # fmt: skip
REAL["psi"] = (mp.digamma, [U(-5, 30)])
COMPLEX = {
    "gamma": (mp.gamma, [C(0.1, 9)]), "rgamma": (mp.rgamma, [C(0.1, 9)]), "loggamma": (mp.loggamma, [C(0.1, 30, 2.5)]), "psi": (mp.digamma, [C(0.1, 30)]),
    "erf": (mp.erf, [C(0.1, 4)]), "erfc": (mp.erfc, [C(0.1, 4)]), "erfi": (mp.erfi, [C(0.1, 4)]), "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), [C(0.1, 20, 1.5)]),
    "wofz": (lambda x: mp.exp(-x * x) * mp.erfc(-1j * x), [C(0.1, 12)]), "dawsn": (lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), [C(0.1, 12)]),
    "ndtr": (normal, [C(0.1, 4)]), "log_ndtr": (lambda x: mp.log(normal(x)), [C(0.1, 1)]), "exp1": (mp.e1, [C(0.1, 9)]), "expm1": (mp.expm1, [C(0.1, 9)]), "log1p": (mp.log1p, [C(0.1, 9)]),
    "spence": (lambda x: mp.polylog(2, 1 - x), [C(0.1, 9, 2.5)]), "wrightomega": (lambda x: mp.lambertw(mp.exp(x)), [C(0.1, 3)]),
    "_lambertw": (lambda x, k, tol: mp.lambertw(x, int(k)), [C(0.1, 9), N(-2, 2), lambda rng: 1e-8]), "_riemann_zeta": (mp.zeta, [C(0.1, 9)]),
    "jv": (mp.besselj, [U(-3, 9), C(0.1, 60)]), "yv": (mp.bessely, [U(-3, 9), C(0.1, 60)]), "iv": (mp.besseli, [U(-3, 9), C(0.1, 60)]), "kv": (mp.besselk, [U(-3, 9), C(0.1, 60)]),
    "kve": (lambda v, x: mp.exp(x) * mp.besselk(v, x), [U(-3, 9), C(0.1, 60)]), "hankel1": (mp.hankel1, [U(-3, 9), C(0.1, 60)]), "hankel2": (mp.hankel2, [U(-3, 9), C(0.1, 60)]),
    "hankel1e": (lambda v, x: mp.exp(-1j * x) * mp.hankel1(v, x), [U(-3, 9), C(0.1, 60)]), "hankel2e": (lambda v, x: mp.exp(1j * x) * mp.hankel2(v, x), [U(-3, 9), C(0.1, 60)]),
    "elliprf": (mp.elliprf, [C(0.1, 9, 2)] * 3), "elliprg": (mp.elliprg, [C(0.1, 9, 1.4)] * 3), "elliprd": (mp.elliprd, [C(0.1, 9, 1.4)] * 3),
    "hyp0f1": (mp.hyp0f1, [U(0.2, 6), C(0.1, 9)]), "hyp1f1": (mp.hyp1f1, [U(0.2, 6), U(0.2, 6), C(0.1, 9)]), "hyp2f1": (mp.hyp2f1, [U(0.2, 3), U(0.2, 3), U(3.2, 6), C(0.1, 0.8)]),
    "eval_legendre": (mp.legendre, [U(0.3, 6), C(0.1, 0.8)]), "eval_jacobi": (jacobi_by_series, [U(0.3, 6), U(0.3, 3), U(0.3, 3), C(0.1, 0.8)]),
    "eval_chebyt": (mp.chebyt, [U(0.3, 6), C(0.1, 0.8)]),
}  # fmt: skip
