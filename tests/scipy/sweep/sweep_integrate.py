"""scipy.integrate: quadrature, sums, differential equations."""

import numpy as np
from scipy import integrate
from tests.scipy.sweep.harness import Table

TABLE = Table(integrate, "scipy.integrate")
add, each = TABLE.add, TABLE.each
P = np.array([0.8, 1.3, 0.4])
Y = np.cos(np.arange(15.0) ** 1.2).reshape(3, 5)
T = np.array([0.0, 0.3, 0.7, 1.2, 2.0])
FORMS = ("strided", "reversed", "float32", "complex")

each("trapezoid simpson cumulative_trapezoid trapz simps cumtrapz", lambda f, x: f(x, T), Y, forms=FORMS)
each("trapezoid simpson cumulative_trapezoid", lambda f, x: f(Y, T + 0.1 * x, axis=-1), T, label="x", forms=())
each("trapezoid simpson cumulative_trapezoid", lambda f, x: f(x, dx=0.3, axis=0), Y, label="axis", forms=())
add("cumulative_simpson", lambda f, x: f(x, dx=0.3), Y, forms=FORMS)
add("romb", lambda f, x: f(x, dx=0.3), Y, forms=FORMS)
add("quad", lambda f, x: f(lambda t: np.exp(-x[0] * t * t) * np.cos(x[1] * t), 0.0, x[2])[0], P, forms=())
add("quad", lambda f, x: f(lambda t: np.exp(-x[0] * t * t), 0.0, np.inf)[0], P, label="infinite", forms=())
add("quad", lambda f, x: f(lambda t: np.exp(-x[0] * t), 0.0, 2.0, weight="cos", wvar=3.0)[0], P, label="cos", forms=())
add("quad", lambda f, x: f(lambda t: abs(t - 0.5) * x[0], 0.0, x[1], points=[0.5])[0], P, label="points", forms=())
add("quad", lambda f, x: f(lambda t: np.exp(1j * x[0] * t), 0.0, x[1], complex_func=True)[0], P, label="complex", forms=())
add("dblquad", lambda f, x: f(lambda s, t: np.exp(-x[0] * s * t), 0.0, x[1], lambda t: 0.0, lambda t: t * x[2])[0], P, forms=(), nested=False)
add("tplquad", lambda f, x: f(lambda r, s, t: np.exp(-x[0] * r * s * t), 0.0, 1.0, 0.0, 1.0, 0.0, x[1], epsabs=1e-2, epsrel=1e-2)[0], P, forms=(), nested=False)
add("nquad", lambda f, x: f(lambda s, t: np.exp(-x[0] * s * t), [(0.0, x[1]), (0.0, x[2])])[0], P, forms=())
add("quad_vec", lambda f, x: f(lambda t: np.exp(-x * t), 0.0, 2.0)[0], P, forms=())
add("fixed_quad", lambda f, x: f(lambda t: np.exp(-x[0] * t), 0.0, x[1])[0], P, forms=())
each("quadrature romberg", lambda f, x: (lambda y: y[0] if isinstance(y, tuple) else y)(f(lambda t: np.exp(-x[0] * t), 0.0, 1.0)), P, forms=())
add("tanhsinh", lambda f, x: f(lambda t: np.exp(-x[0] * t), 0.0, x[1]).integral, P, forms=())
add("nsum", lambda f, x: f(lambda k: x[0] / k**3, 1, np.inf).sum, P, forms=())
add("cubature", lambda f, x: f(lambda t: np.exp(-x[0] * t.sum(-1)), [0.0, 0.0], [1.0, 1.0]).estimate, P, forms=())
add("lebedev_rule", lambda f, x: (f(3)[1] * x[0]).sum(), P, forms=(), constant=True)
add("newton_cotes", lambda f, x: f(4)[0] * x[0], P, forms=(), constant=True)


def motion(t, y, a, b):
    return np.array([y[1], -a * y[0] - b * y[1] * abs(y[0])])


for method in ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA"):
    add("solve_ivp", lambda f, x, method=method: f(motion, (0.0, 1.5), [1.0, x[2]], method=method, t_eval=[0.7, 1.5], args=(x[0], x[1]), rtol=1e-10, atol=1e-11).y, P, label=method, forms=(), loose=1e-4, step=1e-3, nested=method in ("RK45", "LSODA"))
add("solve_ivp", lambda f, x: f(motion, (0.0, x[0]), [1.0, x[2]], dense_output=True, args=(x[0], x[1]), rtol=1e-10, atol=1e-11).sol(0.4), P, label="dense", forms=(), loose=1e-4, step=1e-3)
add("odeint", lambda f, x: f(motion, [1.0, x[2]], T, args=(x[0], x[1]), tfirst=True, rtol=1e-11, atol=1e-12), P, forms=(), loose=1e-4, step=1e-3)
each("RK23 RK45 DOP853 Radau BDF", lambda f, x: stepped(f, x), P, forms=(), loose=1e-4, step=1e-4, nested=False)
add("ode", lambda f, x: f(lambda t, y: motion(t, y, x[0], x[1])).set_integrator("dopri5", rtol=1e-11, atol=1e-12).set_initial_value([1.0, x[2]], 0.0).integrate(1.2), P, forms=(), loose=1e-4, step=1e-3)
add("solve_bvp", lambda f, x: f(lambda t, y: np.vstack([y[1], -x[0] * y[0]]), lambda a, b: np.array([a[0], b[0] - x[1]]), np.linspace(0, 1, 9), np.ones((2, 9)), tol=1e-9).sol([0.3, 0.6]), P, forms=(), loose=1e-4, step=1e-3)


def stepped(method, x):
    solver = method(lambda t, y: motion(t, y, x[0], x[1]), 0.0, np.array([1.0, 0.2]) * x[2], 1.0)
    for _ in range(2):
        solver.step()
    return solver.y
