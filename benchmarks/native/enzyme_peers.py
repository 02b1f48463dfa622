"""The workloads in C++, differentiated by Enzyme through the package enzyme-ad (which brings its own compiler).

It offers C++ functions as functions of JAX, so the call goes through `jax.jit`. The compiler is not told the processor
(the package takes no such option), which costs the loops that vectorise.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from enzyme_ad.jax import cpp_call

from benchmarks.native.case import Case, Peer, flat

jax.config.update("jax_enable_x64", True)

Made = Iterator[tuple[str, Peer]]

DECLARED = """
extern "C" double exp(double); extern "C" double log(double); extern "C" double sin(double);
extern "C" double tanh(double); extern "C" double fabs(double); extern "C" double sqrt(double);
"""

LOTKA_VOLTERRA = """
template<typename P, typename Y>
void f(enzyme::tensor<double, 1>& out, const P& p, const Y& y0) {
  double x = y0[0], y = y0[1], h = 1e-4;
  for (int i = 0; i < 100000; i++) {
    double a1 = p[0] * x - p[1] * x * y, b1 = p[3] * x * y - p[2] * y, u = x + h / 2 * a1, v = y + h / 2 * b1;
    double a2 = p[0] * u - p[1] * u * v, b2 = p[3] * u * v - p[2] * v; u = x + h / 2 * a2; v = y + h / 2 * b2;
    double a3 = p[0] * u - p[1] * u * v, b3 = p[3] * u * v - p[2] * v; u = x + h * a3; v = y + h * b3;
    double a4 = p[0] * u - p[1] * u * v, b4 = p[3] * u * v - p[2] * v;
    x += h / 6 * (a1 + 2 * a2 + 2 * a3 + a4); y += h / 6 * (b1 + 2 * b2 + 2 * b3 + b4);
  }
  out[0] = x + y;
}
"""

NEWTON = """
template<typename P>
void f(enzyme::tensor<double, 1>& out, const P& p) {
  double s = p[3], total = 0;
  for (int k = 0; k < 100000; k++) {
    double y = 1;
    for (;;) {
      double r = y * y * y + p[0] * y - s;
      if (!(fabs(r) > 1e-10)) break;
      y -= r / (3 * y * y + p[0]);
    }
    total += y * y; s = p[1] * y + p[2] * sin(0.01 * k) + 1;
  }
  out[0] = total / 100000;
}
"""

# two steps a turn, so that the buffers keep their names; their frames never change
HEAT = """
static void step(double c, const double* __restrict__ u, double* __restrict__ v) {
  const int n = 256;
  for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++) {
    const double* a = u + i * n + j;
    v[i * n + j] = a[0] + c * (a[-1] + a[1] + a[-n] + a[n] - 4 * a[0]) REACTION;
  }
}
template<typename U>
void f(enzyme::tensor<double, 1>& out, const U& u0) {
  const int n = 256; double c = 0.2, total = 0;
  double* u = (double*)__builtin_malloc(8 * n * n); double* v = (double*)__builtin_malloc(8 * n * n);
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) v[i * n + j] = u[i * n + j] = u0[i][j];
  for (int t = 0; t < 100; t++) { step(c, u, v); step(c, v, u); }
  for (int i = 0; i < n * n; i++) total += u[i] * u[i];
  out[0] = 0.5 * total;
  __builtin_free(u); __builtin_free(v);
}
"""

ASIAN = """
template<typename T, typename Z>
void f(enzyme::tensor<double, 1>& out, const T& th, const Z& z) {
  const int n = 100032, m = 50;
  double dt = th[4] / m, a = (th[2] - 0.5 * th[3] * th[3]) * dt, b = th[3] * sqrt(dt), total = 0;
  for (int i = 0; i < n; i++) {
    double price = th[0], mean = 0;
    for (int t = 0; t < m; t++) { price *= exp(a + b * z[i][t]); mean += price; }
    mean = mean / m - th[1];
    if (mean > 0) total += mean;
  }
  out[0] = exp(-th[2] * th[4]) * total / n;
}
"""

GMM = """
template<typename A, typename M, typename Q, typename L, typename X>
void f(enzyme::tensor<double, 1>& out, const A& alphas, const M& means, const Q& logs, const L& l, const X& points) {
  const int n = 1000, d = 10, k = 25;
  double e[k * d], levels[k], terms[k], total = 0, squares = 0, sum = 0;
  for (int j = 0; j < k; j++) {
    levels[j] = alphas[j];
    for (int i = 0; i < d; i++) {
      double q = logs[j][i]; e[j * d + i] = exp(q); levels[j] += q; sum += q; squares += e[j * d + i] * e[j * d + i];
    }
    for (int i = 0; i < d * (d - 1) / 2; i++) squares += l[j][i] * l[j][i];
  }
  for (int p = 0; p < n; p++) {
    double highest = -1e300, s = 0;
    for (int j = 0; j < k; j++) {
      double c[d], y[d], square = 0; int at = 0;
      for (int i = 0; i < d; i++) { c[i] = points[p][i] - means[j][i]; y[i] = e[j * d + i] * c[i]; }
      for (int i = 0; i < d; i++) for (int r = i + 1; r < d; r++) y[r] += l[j][at++] * c[i];
      for (int i = 0; i < d; i++) square += y[i] * y[i];
      terms[j] = levels[j] - 0.5 * square;
      if (terms[j] > highest) highest = terms[j];
    }
    for (int j = 0; j < k; j++) s += exp(terms[j] - highest);
    total += highest + log(s);
  }
  double s = 0;
  for (int j = 0; j < k; j++) s += exp(alphas[j]);
  out[0] = total - n * log(s) - 0.5 * GAMMA * GAMMA * squares + DEGREES * sum + CONSTANT;
}
"""

LSTM = """
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
template<typename M, typename E, typename S, typename X>
void f(enzyme::tensor<double, 1>& out, const M& w, const E& extra, const S& state, const X& text) {
  const int l = 2, c = 1024, b = 14;
  double h[l * b], cell[l * b], z[b], total = 0;
  for (int k = 0; k < l; k++) for (int j = 0; j < b; j++) {
    h[k * b + j] = state[2 * k][j]; cell[k * b + j] = state[2 * k + 1][j];
  }
  for (int t = 0; t < c - 1; t++) {
    for (int j = 0; j < b; j++) z[j] = text[t][j] * extra[0][j];
    for (int k = 0; k < l; k++) for (int j = 0; j < b; j++) {
      double& hj = h[k * b + j]; double& cj = cell[k * b + j];
      double forget = sigmoid(z[j] * w[2 * k][j] + w[2 * k + 1][j]);
      double take = sigmoid(hj * w[2 * k][b + j] + w[2 * k + 1][b + j]);
      double give = sigmoid(z[j] * w[2 * k][2 * b + j] + w[2 * k + 1][2 * b + j]);
      double change = tanh(hj * w[2 * k][3 * b + j] + w[2 * k + 1][3 * b + j]);
      cj = cj * forget + take * change; hj = give * tanh(cj); z[j] = hj;
    }
    double s = 2;
    for (int j = 0; j < b; j++) { z[j] = z[j] * extra[1][j] + extra[2][j]; s += exp(z[j]); }
    double level = log(s);
    for (int j = 0; j < b; j++) total += text[t + 1][j] * (z[j] - level);
  }
  out[0] = -total / ((c - 1) * b);
}
"""


def peer(source: str, case: Case, given: int, **numbers: float) -> Peer:
    """A peer: value and gradient of the C++ function `f` in the first `given` arguments of the case."""
    for name, number in numbers.items():
        source = source.replace(name, repr(number))

    def value(*args: Any) -> Any:
        shapes = [jax.core.ShapedArray([1], jnp.float64)]
        return cpp_call(*args, out_shapes=shapes, source=DECLARED + source, argv=("-O3",))[0][0]

    both = jax.jit(jax.value_and_grad(value, case.argnums))
    arrays = [jnp.asarray(x) for x in case.args[:given]]

    def run() -> tuple[Any, np.ndarray]:
        found, gradient = jax.block_until_ready(both(*arrays))
        return float(found), flat(gradient)

    return Peer(run)


def _one(source: str, given: int, **numbers: float) -> Callable[[Case], Made]:
    def made(case: Case) -> Made:
        yield "Enzyme", peer(source, case, given, **numbers)

    return made


def gmm(case: Case) -> Made:
    *arrays, gamma, m = case.args
    zero = [np.zeros_like(x) for x in arrays[:4]]
    k, d = arrays[1].shape
    # the constant of the density: at zero parameters everything else is known
    known = -0.5 * np.sum(arrays[4] ** 2) - 0.5 * gamma**2 * k * d
    constant = float(case.f(*zero, arrays[4], gamma, m) - known)
    yield "Enzyme", peer(GMM, case, 5, GAMMA=float(gamma), DEGREES=float(m), CONSTANT=constant)


PEERS = {
    "lotka_volterra": _one(LOTKA_VOLTERRA, 2),
    "newton": _one(NEWTON, 1),
    "heat": _one(HEAT.replace("REACTION", ""), 1),
    "reaction": _one(HEAT.replace("REACTION", "+ 0.05 * a[0] * (1 - a[0])"), 1),
    "asian": _one(ASIAN, 2),
    "gmm": gmm,
    "lstm": _one(LSTM, 4),
}
