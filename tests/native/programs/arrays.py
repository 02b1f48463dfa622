"""Arrays of rank 0 to 4, layouts C, F and A, dtypes, new memory, expressions, reductions and linear algebra."""

import math

import numpy as np

from tests.native.programs.entries import CUBE, GRID, M, V, W, Z, program


@program(np.array(0.7), 0.4)
def rank_0(a, x):
    return a[()] * x + math.sin(a[()])


@program(CUBE, 0.4, compiled=True)
def rank_3_in_loops(a, x):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[2]):
                s += a[i, j, k] * a[i, j - 1, k] * x
    return s


@program(np.sin(np.arange(16.0)).reshape(2, 2, 2, 2))
def rank_4(a):
    b = a[1, :, ::-1] * a[0]
    return np.sum(b * b) + a[1, 0, 1, 0] * b[1, 1, 0]


@program(np.asfortranarray(M), 0.4)
def layout_f(m, x):
    c = m.copy()
    c[0] = c[:, 1] * x
    return np.sum(c * m) + np.sum(m[:, 2] ** 2)


@program(GRID[::2, ::-2], V[::-1])
def layout_a(m, v):
    s = 0.0
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            s += m[i, j] * v[j] ** 2 * (i + 1)
    m[1] *= v[0]
    return s + np.sum(m * m)


@program(V.astype(np.float32), 0.5)
def float32_arrays(v, x):
    w = v * v
    w[0] += np.float32(x)
    s = np.float32(0.0)
    for k in range(4):
        s += w[k] * v[k]
    return float(s) + x * x


@program(Z, 0.6)
def complex_arrays(z, x):
    w = z * z.conj() + z * x
    w[1] = z[0] * 1j
    return np.sum(np.abs(w)) + np.sum(w).imag


@program(V, np.array([2, 0, 3]), np.array([True, False, True, True]))
def integer_and_boolean_arrays(v, at, which):
    s = 0.0
    for i in at:
        if which[i]:
            s += v[i] * v[i - 1]
    counts = np.zeros(4, np.int64)
    for k in range(4):
        counts[k] = at[k % 3] + k
    return s * counts[2] + np.sum(v[at]) + np.sum(v[which] ** 2)


@program(V, 0.4)
def memory_from_empty_zeros_ones_and_full(v, x):
    a, b, c, d = np.empty(4), np.zeros(4), np.ones(4), np.full(4, x)
    for k in range(4):
        a[k] = v[k] * x
        b[k] += a[k] * c[k]
    c *= b
    return np.sum(a * c + d) + b[0]


@program(V, 0.4)
def memory_like_other_memory(v, x):
    a, b = np.zeros_like(v), np.empty_like(v)
    b[:] = x
    a[1:] = v[:-1] * b[1:]
    return np.sum(a * v)


@program(V, W, 0.3, compiled=True)
def chains_of_elementwise_operations(v, w, x):
    z = np.exp(-v * v) * w + x / (1.0 + v * v)
    return np.sum(np.sin(z) * z - np.tanh(w) * x) + np.mean(z**2)


@program(M, V[:3])
def broadcasting(m, v):
    return np.sum(m * v + v.reshape(3, 1) * m - v / (2.0 + m * m)) + np.sum(m + 1.5)


@program(GRID)
def reductions_along_axes(m):
    return np.sum(np.sum(m, axis=0) ** 2) + np.sum(m.sum(1)) + m.mean() * np.max(m) + np.min(m) + np.prod(m[0]) + np.var(m)


@program(V)
def running_sums_products_and_differences(v):
    return np.sum(np.cumsum(v) * np.cumprod(v)) + np.sum(np.diff(v) ** 3)


@program(M, V[:3])
def products_of_every_shape(m, v):
    return v @ v + np.sum(m @ v) + v @ m @ v + np.sum(np.dot(m, m.T)) + np.sum(np.outer(v, v) * m)


@program(M + 3 * np.eye(3), V[:3], compiled=True)
def linear_systems(m, v):
    x = np.linalg.solve(m, v)
    return np.sum(x * v) + np.linalg.det(m) + np.sum(np.linalg.inv(m)) + np.linalg.norm(x)


@program(M @ M.T + np.eye(3), V[:3])
def factors_and_eigenvalues(m, v):
    low = np.linalg.cholesky(m)
    return np.sum(low @ v) + np.linalg.slogdet(m)[1] + np.linalg.eigvalsh(m)[2]


@program(V, W)
def choices(v, w):
    return np.sum(np.where(v > w, v * w, np.maximum(v, 0.5)) + np.minimum(v, w)) + np.sum(np.clip(v, -0.5, 1.0))


@program(GRID)
def reshaped_transposed_and_joined(m):
    a = m.T.copy().reshape(6, 5) * m
    b = np.concatenate((m[0], m[1] * 2.0))
    return np.sum(a * m) + np.sum(b * np.hstack((m[2], m[3]))) + np.sum(np.vstack((m[4], m[5]))[1] * m.ravel()[:5])


@program(V)
def sorted_flipped_and_repeated(v):
    return np.sum(np.sort(v) * np.arange(4.0)) + np.sum(np.flip(v) * v) + np.sum(np.repeat(v, 2)[1:5] * v)


@program(np.zeros(0), np.zeros((0, 3)), 0.5)
def empty_arrays(v, m, x):
    s = x * x
    for k in range(v.size):
        s += v[k]
    return s + np.sum(v * 2.0) + np.sum(m) + np.sum(m @ np.ones(3))
