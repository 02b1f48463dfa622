"""scipy.optimize: what solvers find, in what their functions depend on."""

import numpy as np
from scipy import optimize
from tests.scipy.sweep.harness import Table

TABLE = Table(optimize, "scipy.optimize")
add, each = TABLE.add, TABLE.each
P = np.array([1.3, 0.7, 2.1])
M = np.array([[2.0, 0.3, -0.1], [0.2, 1.5, 0.4], [0.1, -0.3, 2.5]])


def cost(z, p):
    return ((M @ z - p) ** 2).sum() + 0.1 * (z**4).sum()


def cost1(z, p):
    return (z - p[0]) ** 2 + 0.1 * p[1] * z**4


def equations(z, p):
    return M @ z + 0.1 * z**3 - p


each("brentq brenth bisect ridder toms748", lambda f, x: f(lambda z: z**3 + x[1] * z - x[0], 0.0, 3.0, xtol=1e-13), P, forms=("float32",))
add("newton", lambda f, x: f(lambda z: z**3 + x[1] * z - x[0], 1.0, tol=1e-13), P, forms=())
add("newton", lambda f, x: f(lambda z: z**3 + z - x, np.ones(3), tol=1e-13), P, label="array", forms=())
for method in ("brentq", "newton", "secant", "halley"):
    more = {"bracket": (0.0, 3.0)} if method == "brentq" else {"x0": 1.0}
    more |= {"fprime": lambda z: 3 * z * z + 1} if method in ("newton", "halley") else {}
    more |= {"fprime2": lambda z: 6 * z} if method == "halley" else {}
    add("root_scalar", lambda f, x, method=method, more=more: f(lambda z: z**3 + z - x[0], method=method, xtol=1e-13, **more).root, P, label=method, forms=())
add("fixed_point", lambda f, x: f(lambda z: np.cos(0.3 * z * x), 0.5 * np.ones(3), xtol=1e-13), P, forms=())
add("fsolve", lambda f, x: f(equations, np.ones(3), args=(x,), xtol=1e-13), P, forms=())
for method in ("hybr", "lm", "broyden1", "krylov", "df-sane"):
    add("root", lambda f, x, method=method: f(equations, np.ones(3), args=(x,), method=method, tol=1e-12).x, P, label=method, forms=(), loose=1e-4)
each("broyden1 broyden2 anderson newton_krylov diagbroyden", lambda f, x: f(lambda z: equations(z, x), np.ones(3), f_tol=1e-11), P, forms=(), loose=1e-4)
for method in ("BFGS", "CG", "Nelder-Mead", "Powell", "L-BFGS-B", "TNC", "COBYLA", "SLSQP", "trust-constr"):
    add("minimize", lambda f, x, method=method: f(cost, np.ones(3), args=(x,), method=method, tol=1e-10).x, P, label=method, forms=(), loose=1e-3, step=1e-2)
for method in ("Newton-CG", "trust-exact", "dogleg", "trust-ncg", "trust-krylov"):
    add("minimize", lambda f, x, method=method: f(cost, np.ones(3), args=(x,), method=method, jac=lambda z, p: 2 * M.T @ (M @ z - p) + 0.4 * z**3, hess=lambda z, p: 2 * M.T @ M + np.diag(1.2 * z**2), tol=1e-10).x, P, label=method, forms=(), loose=1e-3, step=1e-2)
add("minimize", lambda f, x: f(cost, np.ones(3), args=(x,), method="L-BFGS-B", bounds=[(0.0, 0.4), (None, None), (0.0, None)], options={"ftol": 1e-14, "gtol": 1e-9}).x, P, label="bounds", forms=(), loose=1e-3, step=1e-2)
add("minimize", lambda f, x: f(cost, np.ones(3), args=(x,), method="SLSQP", constraints=[{"type": "eq", "fun": lambda z: z.sum() - 1.0}], tol=1e-12).x, P, label="constraint", forms=(), loose=1e-3, step=1e-2)
each("fmin fmin_powell fmin_cg fmin_bfgs fmin_ncg", lambda f, x: f(lambda z: cost(z, x), np.ones(3), **({"fprime": lambda z: 2 * M.T @ (M @ z - x) + 0.4 * z**3, "avextol": 1e-12} if "ncg" in f.__name__ else {"gtol": 1e-9} if "gs" in f.__name__ or "cg" in f.__name__ else {"xtol": 1e-10, "ftol": 1e-14}), disp=0), P, forms=(), loose=1e-3, step=1e-2)
each("fmin_l_bfgs_b fmin_tnc", lambda f, x: f(lambda z: cost(z, x), np.ones(3), approx_grad=True, **({"factr": 10.0} if "bfgs" in f.__name__ else {"disp": 0}))[0], P, forms=(), loose=1e-3, step=1e-2)
add("fmin_slsqp", lambda f, x: f(lambda z: cost(z, x), np.ones(3), iprint=0, acc=1e-13), P, forms=(), loose=1e-3, step=1e-2)
add("fmin_cobyla", lambda f, x: f(lambda z: cost(z, x), np.ones(3), [lambda z: 5.0 - z.sum()], rhoend=1e-9), P, forms=(), loose=1e-3, step=1e-2)
for method in ("brent", "golden", "bounded"):
    add("minimize_scalar", lambda f, x, method=method: f(cost1, args=(x,), method=method, **({"bounds": (0.0, 3.0), "options": {"xatol": 1e-10}} if method == "bounded" else {"tol": 1e-10})).x, P, label=method, forms=(), loose=1e-3, step=1e-2)
each("brent golden", lambda f, x: f(lambda z: cost1(z, x), tol=1e-10), P, forms=(), loose=1e-3, step=1e-2)
add("fminbound", lambda f, x: f(lambda z: cost1(z, x), 0.0, 3.0, xtol=1e-10), P, forms=(), loose=1e-3, step=1e-2)
T = np.linspace(0.0, 2.0, 7)
Y = 1.3 * np.exp(-0.7 * T) + 0.05 * np.cos(9 * T)
for method in ("trf", "dogbox", "lm"):
    add("least_squares", lambda f, x, method=method: f(lambda z: z[0] * np.exp(-z[1] * T) - Y * x[0], [1.0, 1.0], method=method, xtol=1e-14, ftol=1e-14, gtol=1e-14).x, P, label=method, forms=(), loose=1e-4, step=1e-3)
add("least_squares", lambda f, x: f(lambda z: z[0] * np.exp(-z[1] * T) - Y * x[0], [1.0, 1.0], loss="soft_l1", xtol=1e-14, ftol=1e-14, gtol=1e-14).x, P, label="soft_l1", forms=(), loose=1e-3, step=1e-3)
add("leastsq", lambda f, x: f(lambda z: z[0] * np.exp(-z[1] * T) - Y * x[0], [1.0, 1.0], xtol=1e-13, ftol=1e-13)[0], P, forms=(), loose=1e-4, step=1e-3)
add("curve_fit", lambda f, x: f(lambda t, a, b: a * np.exp(-b * t), T, Y * x[0], [1.0, 1.0], xtol=1e-13, ftol=1e-13), P, forms=(), loose=1e-4, step=1e-3)
add("lsq_linear", lambda f, x: f(M * x, [1.0, -2.0, 0.5]).x, P, forms=())
add("lsq_linear", lambda f, x: f(M * x, [1.0, -2.0, 0.5], bounds=(0.0, 1.0), tol=1e-14).x, P, label="bounds", forms=(), loose=1e-3)
add("nnls", lambda f, x: f(M * x, np.array([1.0, -2.0, 0.5]))[0], P, forms=())
add("linprog", lambda f, x: f(-x, A_ub=np.abs(M), b_ub=np.array([1.0, 2.0, 1.5]) * x).x, P, forms=())
add("milp", lambda f, x: f(-x, bounds=optimize.Bounds(0, 2.5), integrality=np.ones(3)).x * x[0], P, forms=())
add("isotonic_regression", lambda f, x: f(x).x, P, forms=())
add("linear_sum_assignment", lambda f, x: (M * x)[f(M)], P, forms=(), constant=True)
add("quadratic_assignment", lambda f, x: f(M, M)["fun"] * x[0], P, forms=(), constant=True)
each("differential_evolution", lambda f, x: f(cost, [(-2, 2)] * 3, args=(x,), seed=1, tol=1e-10).x, P, forms=(), loose=1e-3, step=1e-2, nested=False)
each("dual_annealing", lambda f, x: f(cost, [(-2, 2)] * 3, args=(x,), seed=1, maxiter=30).x, P, forms=(), loose=1e-2, step=1e-2, nested=False)
each("basinhopping", lambda f, x: f(lambda z: cost(z, x), np.ones(3), seed=1, niter=3).x, P, forms=(), loose=1e-2, step=1e-2, nested=False)
each("shgo", lambda f, x: f(cost, [(-2, 2)] * 3, args=(x,)).x, P, forms=(), loose=1e-2, step=1e-2, nested=False)
each("direct", lambda f, x: f(cost, [(-2, 2)] * 3, args=(x,)).x, P, forms=(), loose=1e-2, step=1e-2, nested=False)
add("brute", lambda f, x: f(lambda z: cost(z, x), [(-2, 2)] * 3, Ns=4), P, forms=(), loose=1e-2, step=1e-2, nested=False)
add("approx_fprime", lambda f, x: f(x, lambda z: cost(z, x)), P, forms=(), loose=1e-4, step=1e-2, nested=False)
each("rosen rosen_der rosen_hess", lambda f, x: f(x), P, forms=("strided", "float32"))
add("rosen_hess_prod", lambda f, x: f(x, x[::-1]), P, forms=())
add("bracket", lambda f, x: f(lambda z: cost1(z, x))[3], P, forms=())
add("line_search", lambda f, x: f(lambda z: cost(z, x), lambda z: 2 * M.T @ (M @ z - x) + 0.4 * z**3, np.ones(3), -np.ones(3))[0] * x[0], P, forms=(), loose=1e-3)
add("LbfgsInvHessProduct", lambda f, x: f(M * x, M + x) @ x, P, forms=())
