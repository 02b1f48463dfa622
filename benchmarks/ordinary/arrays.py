"""Programs over NumPy arrays, as users write them: small arrays in loops, updates in place, some linear algebra."""

import numpy as np

from benchmarks.ordinary.program import program

RANDOM = np.random.default_rng(1)


def numbers(*shape):
    """Reproducible numbers."""
    return RANDOM.uniform(-1.0, 1.0, shape)


@program("array written and read element by element", numbers(200), goal=6)
def by_element(a):
    b = np.zeros(len(a))
    b[0] = a[0]
    for k in range(1, len(a)):
        b[k] = 0.9 * b[k - 1] + a[k] * a[k]
    return b[len(a) - 1]


@program("rigid body, arrays of 3", numbers(6), goal=5)
def rigid_body(s):
    inertia = np.array([1.0, 2.0, 3.0])
    w, q = s[:3], s[3:]
    for _ in range(50):
        torque = -0.1 * w + 0.2 * q
        w = w + 0.01 * (torque - np.cross(w, inertia * w)) / inertia
        q = q + 0.01 * np.cross(w, q)
    return np.sum(w * w) + np.dot(q, q)


@program("Euler rotations, 3x3", numbers(3), goal=6)
def rotations(angles):
    p = np.array([0.3, -0.2, 0.9])
    for _ in range(20):
        c, s = np.cos(angles), np.sin(angles)
        rz = np.array([[c[0], -s[0], 0.0], [s[0], c[0], 0.0], [0.0, 0.0, 1.0]])
        rx = np.array([[1.0, 0.0, 0.0], [0.0, c[1], -s[1]], [0.0, s[1], c[1]]])
        p = rz @ (rx @ p)
    return np.sum(p * np.array([1.0, 2.0, 3.0]))


GATES = numbers(4, 8, 8), numbers(4, 8)


@program("LSTM cell", numbers(8), goal=5)
def lstm(x):
    weights, biases = GATES
    h, c = x * 0.0, x * 0.0
    for _ in range(20):
        i, f, o = [1.0 / (1.0 + np.exp(-(weights[k] @ h + x + biases[k]))) for k in range(3)]
        c = f * c + i * np.tanh(weights[3] @ h + x + biases[3])
        h = o * np.tanh(c)
    return np.sum(h * h)


SEEN = numbers(30, 2)


@program("Kalman filter 4x4", numbers(4), goal=5)
def kalman(x):
    step = np.eye(4) + np.diag([0.1, 0.1], 2)
    look = np.eye(2, 4)
    p = np.eye(4) + np.outer(x, x)
    loss = 0.0
    for z in SEEN:
        x = step @ x
        p = step @ p @ step.T + 0.01 * np.eye(4)
        s = look @ p @ look.T + 0.1 * np.eye(2)
        gain = p @ look.T @ np.linalg.inv(s)
        r = z - look @ x
        loss = loss + r @ np.linalg.inv(s) @ r
        x = x + gain @ r
        p = p - gain @ look @ p
    return loss


BATCH = numbers(64, 32)


@program("MLP batch, 64 wide", numbers(32 * 64 + 64), goal=4)
def mlp(w):
    hidden = np.tanh(BATCH @ w[: 32 * 64].reshape(32, 64))
    out = hidden @ w[32 * 64 :]
    return np.sum((out - 1.0) ** 2)


PLACES = numbers(120, 2)
HEIGHTS = numbers(120)


@program("Gaussian process, n = 120", np.array([0.5, 0.3]), goal=4)
def gaussian_process(theta):
    d = PLACES[:, None, :] - PLACES[None, :, :]
    k = theta[0] ** 2 * np.exp(-np.sum(d * d, axis=2) / theta[1] ** 2) + 0.1 * np.eye(len(PLACES))
    return HEIGHTS @ np.linalg.solve(k, HEIGHTS) + np.linalg.slogdet(k)[1]


IMAGE = numbers(40, 40)


@program("convolution by offsets, +=", numbers(5, 5), goal=3)
def convolution(w):
    out = np.zeros((36, 36))
    for i in range(5):
        for j in range(5):
            out += w[i, j] * IMAGE[i : i + 36, j : j + 36]
    return np.sum(np.tanh(out))


@program("PDE by slices, in place", numbers(200), goal=4)
def heat(u0):
    u = u0.copy()
    for _ in range(50):
        u[1:-1] += 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return np.sum(u * u)


@program("Rosenbrock over an array", numbers(100), goal=None)
def rosenbrock_array(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
