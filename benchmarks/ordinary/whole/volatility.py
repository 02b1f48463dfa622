"""A time series by maximum likelihood: ARMA mean and GARCH variance, element by element over NumPy arrays."""

import numpy as np

DRAW = np.random.default_rng(12)
RETURNS = DRAW.standard_t(5, size=150) * 0.8 + 0.05


def residuals(y, constant, ar, ma):
    e = np.zeros(len(y))
    e[0] = y[0] - constant
    for t in range(1, len(y)):
        e[t] = y[t] - constant - ar * y[t - 1] - ma * e[t - 1]
    return e


def variances(e, omega, alpha, beta, leverage):
    v = np.empty(len(e))
    v[0] = omega / (1 - alpha - beta)
    for t in range(1, len(e)):
        shock = e[t - 1] ** 2
        v[t] = omega + alpha * shock + beta * v[t - 1]
        if e[t - 1] < 0:
            v[t] += leverage * shock
    return v


def squash(x):
    return 1 / (1 + np.exp(-x))


def main(theta):
    constant, ar, ma, log_omega, a, b, log_leverage = theta
    e = residuals(RETURNS, constant, np.tanh(ar), np.tanh(ma))
    persistence = 0.95 * squash(b)
    share = squash(a)
    v = variances(e, np.exp(log_omega), persistence * share, persistence * (1 - share), np.exp(log_leverage))
    log_likelihood = -0.5 * np.sum(np.log(2 * np.pi * v) + e**2 / v)
    late = np.mean(v[-20:])
    return -log_likelihood + 0.01 * (late - 1.0) ** 2


X = np.array([0.05, 0.2, -0.1, -2.0, -1.0, 1.5, -3.0])
