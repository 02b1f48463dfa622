"""Every public name of scipy.special has a rule, no tangent, a refusal with its reason, or derives by itself.

The lists are data for a page about what is covered. A name that a new SciPy brings and nobody has looked at fails here.
"""

import types

import numpy as np
import pytest

sc = pytest.importorskip("scipy.special")

import plaingrad  # noqa: E402
from plaingrad import rulebook  # noqa: E402
from plaingrad.rules.scipy import forms  # noqa: E402

assert [*rulebook.rules()]  # they are in force

X = 0.6
# Python functions of SciPy that are differentiated as they are: a call in one number.
DERIVED = {
    "assoc_laguerre": lambda x: sc.assoc_laguerre(x, 3, 1.5),
    "chebyc": lambda x: sc.chebyc(3)(x), "chebys": lambda x: sc.chebys(3)(x), "chebyt": lambda x: sc.chebyt(3)(x), "chebyu": lambda x: sc.chebyu(3)(x),
    "comb": lambda x: sc.comb(x + 4, 2.0), "perm": lambda x: sc.perm(x + 4, 2.0), "diric": lambda x: sc.diric(x, 5),
    "factorial": lambda x: sc.factorial(x, extend="complex") if "extend" in sc.factorial.__code__.co_varnames else x,
    "gegenbauer": lambda x: sc.gegenbauer(3, 1.2)(x), "genlaguerre": lambda x: sc.genlaguerre(3, 1.2)(x), "hermite": lambda x: sc.hermite(3)(x),
    "hermitenorm": lambda x: sc.hermitenorm(3)(x), "jacobi": lambda x: sc.jacobi(3, 1.2, 0.4)(x), "laguerre": lambda x: sc.laguerre(3)(x), "legendre": lambda x: sc.legendre(3)(x),
    "sh_chebyt": lambda x: sc.sh_chebyt(3)(x), "sh_chebyu": lambda x: sc.sh_chebyu(3)(x), "sh_jacobi": lambda x: sc.sh_jacobi(3, 1.9, 1.2)(x), "sh_legendre": lambda x: sc.sh_legendre(3)(x),
    "h1vp": lambda x: np.real(sc.h1vp(1.3, x, 2)), "h2vp": lambda x: np.imag(sc.h2vp(1.3, x, 2)), "ivp": lambda x: sc.ivp(1.3, x, 2), "jvp": lambda x: sc.jvp(1.3, x, 2), "kvp": lambda x: sc.kvp(1.3, x, 2), "yvp": lambda x: sc.yvp(1.3, x, 2),
    "lambertw": lambda x: np.real(sc.lambertw(x)), "log_softmax": lambda x: sc.log_softmax(np.array([x, 1.0, 2 * x]))[2], "logsumexp": lambda x: sc.logsumexp(np.array([x, 1.0, 2 * x])),
    "softmax": lambda x: sc.softmax(np.array([x, 1.0, 2 * x]))[2], "multigammaln": lambda x: sc.multigammaln(x + 3, 3), "polygamma": lambda x: sc.polygamma(2, x), "sinc": np.sinc,
    "softplus": lambda x: sc.softplus(x), "spherical_jn": lambda x: sc.spherical_jn(2, x), "spherical_yn": lambda x: sc.spherical_yn(2, x), "spherical_in": lambda x: sc.spherical_in(2, x, derivative=True),
    "spherical_kn": lambda x: sc.spherical_kn(2, x), "zeta": lambda x: sc.zeta(x + 1, x + 2),
    "btdtr": lambda x: sc.btdtr(1.2, 0.7, x), "btdtri": lambda x: sc.btdtri(1.2, 0.7, x),
}  # fmt: skip
# Numbers that are counted, listed or looked up, classes and settings: nothing in them has a tangent.
NO_TANGENT = {
    "ai_zeros", "bei_zeros", "beip_zeros", "ber_zeros", "berp_zeros", "bi_zeros", "bernoulli", "euler", "erf_zeros", "factorial2", "factorialk",
    "fresnel_zeros", "fresnelc_zeros", "fresnels_zeros", "jn_zeros", "jnjnp_zeros", "jnp_zeros", "jnyn_zeros", "kei_zeros", "keip_zeros", "kelvin_zeros",
    "ker_zeros", "kerp_zeros", "stirling2", "y0_zeros", "y1_zeros", "y1p_zeros", "yn_zeros", "ynp_zeros", "errstate", "geterr", "seterr",
    "SpecialFunctionError", "SpecialFunctionWarning", "h_roots", "hermite_roots", "test",
}  # fmt: skip
# C code without a rule: an argument that depends on the inputs is refused by name.
REFUSED = {
    "lpmn": lambda x: sc.lpmn(2, 2, x / 4)[0][1, 1], "lpn": lambda x: sc.lpn(2, x / 4)[0][1], "clpmn": lambda x: np.real(sc.clpmn(2, 2, x + 0j)[0][1, 1]),
    "ellip_harm": lambda x: sc.ellip_harm(x, 8.0, 2, 1, 2.5), "ellip_harm_2": lambda x: sc.ellip_harm_2(x, 8.0, 2, 1, 4.5), "ellip_normal": lambda x: sc.ellip_normal(x, 8.0, 2, 1),
    "lmbda": lambda x: sc.lmbda(2, x)[0][1], "pbdn_seq": lambda x: np.real(sc.pbdn_seq(2, x + 0j)[0][1]), "pbdv_seq": lambda x: sc.pbdv_seq(2.5, x)[0][1], "pbvv_seq": lambda x: sc.pbvv_seq(2.5, x)[0][1],
}  # fmt: skip
ROOTS = {name for name in sc.__all__ if name.endswith("_roots") or name.startswith("roots_")}
WITH_RULE = {name for name in sc.__all__ if rulebook.find(getattr(sc, name)) is not None}


def test_every_public_name_of_scipy_special_is_accounted_for():
    known = WITH_RULE | set(DERIVED) | NO_TANGENT | set(REFUSED) | ROOTS
    assert [name for name in sc.__all__ if name not in known] == []


def test_every_ufunc_of_scipy_special_has_a_rule_private_ones_too():
    found = {}
    for module in ("_ufuncs", "_special_ufuncs", "_ufuncs_cxx"):
        for name, f in vars(getattr(sc, module, types)).items():
            if isinstance(f, np.ufunc):
                found.setdefault(name, f)
    assert [name for name, f in found.items() if rulebook.find(f) is None] == []


@pytest.mark.parametrize("name", [name for name in DERIVED if name in sc.__all__])
def test_functions_written_in_python_derive_by_themselves(name):
    f = DERIVED[name]
    steps = (1e-3, 1e-3 / 2)
    coarse, fine = [(f(X + h) - f(X - h)) / (2 * h) for h in steps]
    truth = (4 * fine - coarse) / 3
    assert plaingrad.grad(f)(X) == pytest.approx(truth, rel=1e-7)
    assert plaingrad.jvp(f, (X,), (1.0,))[1] == pytest.approx(truth, rel=1e-7)
    below, above = plaingrad.grad(f)(X - 1e-4), plaingrad.grad(f)(X + 1e-4)
    assert plaingrad.derivative(f, order=2)(X) == pytest.approx((above - below) / 2e-4, rel=1e-5)


@pytest.mark.parametrize("name", [name for name in REFUSED if name in sc.__all__])
@pytest.mark.filterwarnings("ignore")
def test_compiled_functions_without_a_rule_are_refused(name):
    try:
        REFUSED[name](2.0)
    except AttributeError:
        pytest.skip(f"this SciPy cannot compute {name}")
    with pytest.raises(plaingrad.errors.MissingRuleError):
        plaingrad.grad(REFUSED[name])(2.0)


def test_refusals_say_why():
    assert all(len(why.split()) > 4 for why in forms.REASONS.values())
    with pytest.raises(plaingrad.errors.MissingRuleError, match="besselpoly"):
        plaingrad.grad(lambda x: sc.besselpoly(0.3, x, 1.0))(0.5)
