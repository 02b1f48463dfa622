"""Slices and views, writes through them, in-place operators, swapped buffers."""

import math

import numpy as np

from tests.native.programs.entries import CUBE, GRID, M, V, W, program


@program(V, 0.4, compiled=True)
def views_of_views_with_negative_strides(v, x):
    w = v[::-1][1:]
    u = w[::-2]
    u[0] *= x
    w[1] = u[1] * v[0]
    return np.sum(u * u) + np.sum(v * w[0])


@program(CUBE, 0.4)
def a_view_of_a_row_of_a_transpose(a, x):
    t = a.T[1]
    r = t[::-1, 1]
    r[0] = x * r[2]
    return np.sum(t * t) + a[1, 2, 1]


@program(V)
def an_overlapping_slice_assignment_forwards(v):
    v[1:] = v[:-1]
    return np.sum(v * np.arange(1.0, 5.0))


@program(V)
def an_overlapping_slice_assignment_backwards(v):
    v[:-1] = v[1:] * 2.0
    return np.sum(v * np.arange(1.0, 5.0))


@program(V)
def a_vector_reversed_in_place(v):
    v[::-1] = v
    return np.sum(v * np.arange(1.0, 5.0))


@program(V, W, 0.4)
def every_operator_in_place(v, w, x):
    v += w
    v -= x
    v *= w
    v /= 2.0 + w * w
    return np.sum(v * v)


@program(GRID, V)
def rows_and_columns_in_place(m, v):
    m[1] += m[0]
    m[:, 2] *= m[:, 1]
    m[2:4, 1:5] -= v
    m[5] = m[4] * 0.5
    return np.sum(m * m)


@program(V, 0.4)
def elements_in_place(v, x):
    v[0] += v[1] * x
    v[-1] *= v[0]
    v[1] -= v[-1]
    v[2] /= x
    return np.sum(v * v)


@program(V, 5)
def two_buffers_swapped(v, n):
    a, b = v.copy(), np.zeros(4)
    for _ in range(n):
        for i in range(4):
            b[i] = 0.5 * a[i] + 0.3 * math.sin(a[i - 1])
        a, b = b, a
    return np.sum(a * a) + b[2]


@program(V, 5, 0.3)
def three_buffers_in_turn(v, n, x):
    a, b, c = v.copy(), v * x, np.zeros(4)
    for _ in range(n):
        for i in range(4):
            c[i] = 2 * b[i] - a[i] + x * x * (b[i - 1] - b[i])
        a, b, c = b, c, a
    return np.sum(a * b) + c[0]


@program(GRID, 3, 0.2, compiled=True)
def diffusion_on_a_grid(u, n, k):
    for _ in range(n):
        v = u.copy()
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = u[i, j] + k * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j])
        u = v
    return np.sum(u * u)


@program(GRID, 3, 0.2)
def diffusion_in_place(u, n, k):
    for _ in range(n):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] += k * (u[i - 1, j] + u[i + 1, j] - 2.0 * u[i, j]) + u[i, j] * (1.0 - u[i, j + 1]) * 0.1
    return np.sum(u * u)


@program(GRID[:3, :3].copy(), 2, 0.2)
def a_stencil_on_a_grid_smaller_than_its_rim(u, n, k):
    for _ in range(n):
        v = u.copy()
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = u[i - 1, j] * u[i + 1, j] * k + u[i, j - 1] * u[i, j + 1] + u[i, j]
        u = v
    return np.sum(u * u)


@program(V, 3, 0.2)
def a_periodic_stencil_by_negative_indices(u, n, k):
    for _ in range(n):
        v = np.empty_like(u)
        for i in range(4):
            v[i] = u[i] + k * (u[i - 1] - 2.0 * u[i] + u[(i + 1) % 4])
        u = v
    return np.sum(u * u * u)


@program(M)
def a_view_survives_the_name_it_came_from(m):
    r = m[1]
    m = m * 2.0
    r[0] = m[0, 0] * r[1]
    return np.sum(m) * r[0] + r[2]


@program(V, 0.5)
def a_scan_in_place_and_back(v, x):
    for i in range(1, 4):
        v[i] += v[i - 1] * x
    for i in range(2, -1, -1):
        v[i] -= v[i + 1] * x * v[i]
    return np.sum(v)
