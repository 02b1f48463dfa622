"""A Rauch-Tung-Striebel smoother in NumPy: a vehicle seen by a radar, some measurements missing."""

import numpy as np

DRAW = np.random.default_rng(11)
STEPS, DT = 25, 0.2
TRUTH = np.cumsum(DRAW.normal(size=(STEPS, 2)) * 0.3 + [0.4, 0.2], axis=0)
SEEN = TRUTH + DRAW.normal(size=(STEPS, 2)) * 0.2
MISSING = {4, 5, 13}


def model(q, r):
    a = np.eye(4) + DT * np.eye(4, k=2)
    b = np.array([[DT**2 / 2, 0.0], [0.0, DT**2 / 2], [DT, 0.0], [0.0, DT]])
    return a, q * b @ b.T, np.eye(2, 4), r * np.eye(2)


def kalman_filter(x, p, q, r):
    a, noise, h, measured = model(q, r)
    log_likelihood = 0.0
    predicted, updated = [], []
    for k, z in enumerate(SEEN):
        x = a @ x
        p = a @ p @ a.T + noise
        predicted.append((x, p))
        if k not in MISSING:
            s = h @ p @ h.T + measured
            innovation = z - h @ x
            gain = np.linalg.solve(s, h @ p).T
            log_likelihood -= 0.5 * (
                innovation @ np.linalg.solve(s, innovation) + np.linalg.slogdet(2 * np.pi * s)[1]
            )
            x = x + gain @ innovation
            p = p - gain @ s @ gain.T
        updated.append((x, p))
    return log_likelihood, predicted, updated


def smooth(predicted, updated, a):
    x, p = updated[-1]
    out = [x]
    for (xp, pp), (xu, pu) in zip(reversed(predicted[1:]), reversed(updated[:-1])):
        g = np.linalg.solve(pp, a @ pu).T
        x = xu + g @ (x - xp)
        p = pu + g @ (p - pp) @ g.T
        out.append(x)
    return np.stack(out[::-1])


def main(theta):
    start = theta[:4]
    q, r = np.exp(theta[4]), np.exp(theta[5])
    log_likelihood, predicted, updated = kalman_filter(start, np.eye(4), q, r)
    path = smooth(predicted, updated, model(q, r)[0])
    return -log_likelihood + 0.1 * np.sum((path[:, :2] - TRUTH) ** 2)


X = np.array([0.0, 0.0, 1.0, 0.5, 0.3, -2.5])
