"""Numerical methods as a Numba user writes them, natively: both modes against the plain tier and differences."""

import math

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from tests.native.uncompiled import check

RNG = np.random.default_rng(7)


def thomas(lower, main, upper, right):
    """A tridiagonal system."""
    n = main.size
    c, d = np.empty(n), np.empty(n)
    c[0] = upper[0] / main[0]
    d[0] = right[0] / main[0]
    for i in range(1, n):
        w = main[i] - lower[i - 1] * c[i - 1]
        if i < n - 1:
            c[i] = upper[i] / w
        d[i] = (right[i] - lower[i - 1] * d[i - 1]) / w
    x = np.zeros(n)
    x[-1] = d[-1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return np.sum(x * x)


def convolution(signal, kernel):
    n, m = len(signal), len(kernel)
    out = np.zeros(n + m - 1)
    for i in range(n):
        for j in range(m):
            out[i + j] += signal[i] * kernel[j]
    return np.max(out) + np.sum(out[1:-1:2] ** 2)


def cholesky(A, b):
    """log det and a quadratic form of a matrix made positive definite, by its factor."""
    n = A.shape[0]
    S = A @ A.T + n * np.eye(n)
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = S[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                L[i, j] = math.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    y = np.zeros(n)
    logdet = 0.0
    for i in range(n):
        y[i] = (b[i] - np.dot(L[i, :i], y[:i])) / L[i, i]
        logdet += 2 * math.log(L[i, i])
    return 0.5 * np.dot(y, y) + logdet


def pendulum(t, y, damping):
    return np.array([y[1], -math.sin(y[0]) - damping * y[1] + 0.1 * math.cos(t)])


def adaptive(y0, damping, end, digits):
    """Bogacki and Shampine's pair, with steps that are rejected."""
    tolerance = 10.0**-digits
    t, h = 0.0, 0.5
    y = y0.copy()
    rejected = 0
    while t < end:
        if t + h > end:
            h = end - t
        k1 = pendulum(t, y, damping)
        k2 = pendulum(t + h / 2, y + h / 2 * k1, damping)
        k3 = pendulum(t + 3 * h / 4, y + 3 * h / 4 * k2, damping)
        new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = pendulum(t + h, new, damping)
        error = np.max(np.abs(h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8)))
        if error > tolerance:
            h *= 0.5
            rejected += 1
            continue
        t += h
        y = new
        if error < tolerance / 10:
            h *= 1.5
    return y[0] * y[1] + rejected


def kalman(x, P, F, Q, H, R, measured):
    loglik = 0.0
    for t in range(measured.shape[0]):
        x = F @ x
        P = F @ P @ F.T + Q
        S = H @ P @ H.T + R
        K = P @ H.T / S
        r = measured[t] - H @ x
        loglik -= 0.5 * (r @ np.linalg.solve(S, r) + math.log(S[0, 0]))
        x = x + K @ r
        P = (np.eye(x.size) - K @ H) @ P
    return loglik


def hidden_markov(start, transitions, emissions, seen):
    """The logarithm of the likelihood, scaled forward algorithm."""
    alpha = start * emissions[:, seen[0]]
    total = 0.0
    for t in range(1, len(seen)):
        scale = alpha.sum()
        alpha /= scale
        total += math.log(scale)
        alpha = (alpha @ transitions) * emissions[:, seen[t]]
    return total + math.log(np.sum(alpha))


def viterbi(scores, moves):
    """The score of the best path and the path's end."""
    steps, states = scores.shape
    best = scores[0].copy()
    came = np.zeros((steps, states), np.int64)
    for t in range(1, steps):
        new = np.full(states, -np.inf)
        for j in range(states):
            for i in range(states):
                s = best[i] + moves[i, j]
                if s > new[j]:
                    new[j] = s
                    came[t, j] = i
            new[j] += scores[t, j]
        best = new
    state = int(np.argmax(best))
    total = best[state]
    for t in range(steps - 1, 0, -1):
        total += 0.01 * scores[t, state] ** 2
        state = came[t, state]
    return total


def time_warping(a, b):
    n, m = a.size, b.size
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            D[i, j] = (a[i - 1] - b[j - 1]) ** 2 + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    return math.sqrt(D[n, m])


def edit_cost(a, b, gap):
    previous = np.arange(len(b) + 1) * gap
    for i in range(len(a)):
        current = np.empty_like(previous)
        current[0] = (i + 1) * gap
        for j in range(len(b)):
            current[j + 1] = min(previous[j] + abs(a[i] - b[j]), previous[j + 1] + gap, current[j] + gap)
        previous = current
    return previous[-1]


def particles_in_cells(position, velocity, charge, steps):
    cells = 8
    for _ in range(steps):
        density = np.zeros(cells)
        for p in range(position.size):
            at = position[p] % cells
            i = int(at)
            f = at - i
            density[i] += charge * (1 - f)
            density[(i + 1) % cells] += charge * f
        field = 0.5 * (np.roll(density, 1) - np.roll(density, -1))
        for p in range(position.size):
            at = position[p] % cells
            i = int(at)
            f = at - i
            velocity[p] += 0.1 * (field[i] * (1 - f) + field[(i + 1) % cells] * f)
            position[p] += 0.1 * velocity[p]
    return np.sum(velocity**2) + position[0]


def sparse_product(data, columns, starts, x):
    y = np.zeros(starts.size - 1)
    for i in range(y.size):
        for k in range(starts[i], starts[i + 1]):
            y[i] += data[k] * x[columns[k]]
    return np.dot(y, y)


def american_put(spot, strike, rate, sigma, years, n):
    dt = years / n
    up = math.exp(sigma * math.sqrt(dt))
    p = (math.exp(rate * dt) - 1 / up) / (up - 1 / up)
    discount = math.exp(-rate * dt)
    values = np.empty(n + 1)
    for j in range(n + 1):
        values[j] = max(strike - spot * up ** (2 * j - n), 0.0)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1):
            hold = discount * (p * values[j + 1] + (1 - p) * values[j])
            values[j] = max(hold, strike - spot * up ** (2 * j - i))
    return values[0]


def conjugate_gradients(A, b, digits):
    A = A @ A.T + np.eye(b.size)
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rs = r @ r
    for _ in range(b.size * 2):
        if math.sqrt(rs) < 10.0**-digits:
            break
        Ap = A @ p
        alpha = rs / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        new = r @ r
        p = r + new / rs * p
        rs = new
    return np.sum(x * np.arange(b.size))


def bisection(c):
    """A bracket, then Newton's steps, which carry the derivative."""
    low, high = 0.0, 4.0
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        if middle**3 - c > 0:
            high = middle
        else:
            low = middle
    x = 0.5 * (low + high)
    for _ in range(4):
        x -= (x**3 - c) / (3 * x * x)
    return x


def reactions(rates, start, end):
    """A birth and death process whose waiting times depend on the rates; the draws are fixed."""
    np.random.seed(3)
    n, t, area = start, 0.0, 0.0
    while t < end:
        total = rates[0] + rates[1] * n
        wait = -math.log(1.0 - np.random.random()) / total
        area += n * min(wait, end - t)
        t += wait
        if np.random.random() * total < rates[0]:
            n += 1
        elif n > 0:
            n -= 1
    return area + t


def bodies(mass, position, velocity, steps):
    """Leapfrog."""
    n = mass.size
    force = np.zeros_like(position)
    for _ in range(steps):
        force[:] = 0.0
        for i in range(n):
            for j in range(i):
                d = position[j] - position[i]
                r = math.sqrt(d @ d + 0.01)
                f = mass[i] * mass[j] / r**3 * d
                force[i] += f
                force[j] -= f
        for i in range(n):
            velocity[i] += 0.01 * force[i] / mass[i]
        position += 0.01 * velocity
    return np.sum(position**2) + 0.5 * np.sum(mass * np.sum(velocity**2, axis=1))


def pivoted(A, b):
    """A system by elimination with row exchanges."""
    A, b = A.copy(), b.copy()
    n = b.size
    sign = 1
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[p, k]):
                p = i
        if p != k:
            for j in range(n):
                A[k, j], A[p, j] = A[p, j], A[k, j]
            b[k], b[p] = b[p], b[k]
            sign = -sign
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            A[i, k:] -= factor * A[k, k:]
            b[i] -= factor * b[k]
    det = sign * 1.0
    for k in range(n - 1, -1, -1):
        b[k] = (b[k] - A[k, k + 1 :] @ b[k + 1 :]) / A[k, k]
        det *= A[k, k]
    return np.sum(b) + det


def quickselect(values, k):
    a = values.copy()
    low, high = 0, a.size - 1
    while True:
        pivot = a[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while a[i] < pivot:
                i += 1
            while a[j] > pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            return a[k] * 2.0 + a[0]


def warped(image, shift, turn):
    """Bilinear interpolation of a turned and shifted image."""
    rows, columns = image.shape
    c, s = math.cos(turn), math.sin(turn)
    total = 0.0
    for i in range(rows):
        for j in range(columns):
            y = c * i - s * j + shift[0]
            x = s * i + c * j + shift[1]
            i0, j0 = int(math.floor(y)), int(math.floor(x))
            if i0 < 0 or j0 < 0 or i0 >= rows - 1 or j0 >= columns - 1:
                continue
            u, v = y - i0, x - j0
            value = (1 - u) * ((1 - v) * image[i0, j0] + v * image[i0, j0 + 1])
            value += u * ((1 - v) * image[i0 + 1, j0] + v * image[i0 + 1, j0 + 1])
            total += value * (i + 1) ** 2
    return total


def basis(knots, i, degree, x):
    if degree == 0:
        return 1.0 if knots[i] <= x < knots[i + 1] else 0.0
    left = (x - knots[i]) / (knots[i + degree] - knots[i]) * basis(knots, i, degree - 1, x)
    right = (knots[i + degree + 1] - x) / (knots[i + degree + 1] - knots[i + 1])
    return left + right * basis(knots, i + 1, degree - 1, x)


def spline(knots, weights, x):
    total = 0.0
    for i in range(weights.size):
        total += weights[i] * basis(knots, i, 3, x)
    return total


def triangular(L, b):
    x = b.copy()
    for i in range(b.size):
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] /= L[i, i]
    y = x.copy()
    for i in range(b.size - 1, -1, -1):
        y[i] = (y[i] - np.sum(L[i + 1 :, i] * y[i + 1 :])) / L[i, i]
    return y @ y


def de_casteljau(points, t):
    p = points.copy()
    for r in range(1, len(p)):
        p[: len(p) - r] = (1 - t) * p[: len(p) - r] + t * p[1 : len(p) - r + 1]
    return p[0, 0] * p[0, 1]


def horner(coefficients, x):
    p, dp = 0.0, 0.0
    for c in coefficients:
        dp = dp * x + p
        p = p * x + c
    return p / dp


def softmax_attention(Q, K, V):
    out = np.zeros(V.shape[1])
    for i in range(Q.shape[0]):
        scores = np.empty(K.shape[0])
        for j in range(K.shape[0]):
            scores[j] = np.dot(Q[i], K[j]) / math.sqrt(Q.shape[1])
        w = np.exp(scores - np.max(scores))
        w /= w.sum()
        for j in range(K.shape[0]):
            out += w[j] * V[j]
    return np.sum(out * out)


def gauss_seidel(u, f, sweeps):
    for _ in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])
    return np.sum(u[1:-1, 1:-1])


def upwind(u, speed, steps):
    for _ in range(steps):
        new = u.copy()
        for i in range(u.size):
            if speed[i] > 0:
                new[i] = u[i] - 0.3 * speed[i] * (u[i] - u[i - 1])
            else:
                new[i] = u[i] - 0.3 * speed[i] * (u[(i + 1) % u.size] - u[i])
        u = new
    return np.sum(u * u) + u[2]


def median_of_window(x, width):
    total = 0.0
    for i in range(x.size - width + 1):
        window = np.sort(x[i : i + width])
        total += window[width // 2] * (i + 1)
    return total


def power_method(A, steps):
    v = np.ones(A.shape[0])
    value = 0.0
    for _ in range(steps):
        w = A @ v
        value = (v @ w) / (v @ v)
        v = w / np.sqrt(np.sum(w**2))
    return value


def jacobi_rotations(A, sweeps):
    """The largest eigenvalue of a symmetric matrix."""
    A = 0.5 * (A + A.T)
    n = A.shape[0]
    for _ in range(sweeps):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(A[p, q]) < 1e-12:
                    continue
                theta = (A[q, q] - A[p, p]) / (2 * A[p, q])
                t = math.copysign(1.0, theta) / (abs(theta) + math.sqrt(theta * theta + 1))
                c = 1 / math.sqrt(t * t + 1)
                s = t * c
                for k in range(n):
                    akp, akq = A[k, p], A[k, q]
                    A[k, p], A[k, q] = c * akp - s * akq, s * akp + c * akq
                for k in range(n):
                    apk, aqk = A[p, k], A[q, k]
                    A[p, k], A[q, k] = c * apk - s * aqk, s * apk + c * aqk
    return np.max(np.diag(A))


def garch(returns, omega, alpha, beta):
    variance = np.var(returns)
    total = 0.0
    for r in returns:
        total += math.log(variance) + r * r / variance
        variance = omega + alpha * r**2 + beta * variance
    return -0.5 * total


def gru(W, U, b, xs):
    h = np.zeros(U.shape[1])
    n = h.size
    for x in xs:
        g = W @ x + b
        z = 1 / (1 + np.exp(-(g[:n] + U[:n] @ h)))
        r = 1 / (1 + np.exp(-(g[n : 2 * n] + U[n : 2 * n] @ h)))
        c = np.tanh(g[2 * n :] + U[2 * n :] @ (r * h))
        h = (1 - z) * h + z * c
    return np.sum(h**2)


def layered(weights, x):
    """Layers of several sizes, in a tuple of arrays that is indexed by constants."""
    h = np.tanh(weights[0] @ x)
    h = np.maximum(weights[1] @ h, 0.1 * (weights[1] @ h))
    return np.log(np.sum(np.exp(weights[2] @ h)))


def soft_sort(x, sharpness):
    ranks = np.zeros(x.size)
    for i in range(x.size):
        for j in range(x.size):
            if i != j:
                ranks[i] += 1 / (1 + math.exp(-sharpness * (x[i] - x[j])))
    return np.sum(ranks * np.arange(x.size))


def simpson(a, b, n, p):
    def f(x):
        return math.exp(-p * x * x) * math.sin(x + p)

    h = (b - a) / n
    total = f(a) + f(b)
    for i in range(1, n):
        total += (4 if i % 2 else 2) * f(a + i * h)
    return total * h / 3


def trapezoids(low, high, fl, fh, depth, p):
    middle = 0.5 * (low + high)
    fm = math.exp(-p * middle) * math.cos(middle)
    coarse = 0.5 * (high - low) * (fl + fh)
    fine = 0.25 * (high - low) * (fl + 2 * fm + fh)
    if depth == 0 or abs(fine - coarse) < 1e-3:
        return fine + (fine - coarse) / 3
    return trapezoids(low, middle, fl, fm, depth - 1, p) + trapezoids(middle, high, fm, fh, depth - 1, p)


def adaptive_quadrature(low, high, p):
    return trapezoids(
        low, high, math.exp(-p * low) * math.cos(low), math.exp(-p * high) * math.cos(high), 6, p
    )


def fourier(x, k):
    """One coefficient, in complex numbers."""
    total = 0j
    for n in range(x.size):
        total += x[n] * complex(
            math.cos(2 * math.pi * k * n / x.size), -math.sin(2 * math.pi * k * n / x.size)
        )
    return abs(total) ** 2


def radix_two(x):
    """The power spectrum by a transform in place."""
    n = x.size
    a = x.astype(np.complex128)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j ^= bit
        if i < j:
            a[i], a[j] = a[j], a[i]
    length = 2
    while length <= n:
        w = complex(math.cos(2 * math.pi / length), -math.sin(2 * math.pi / length))
        for start in range(0, n, length):
            wk = 1 + 0j
            for k in range(length // 2):
                u, v = a[start + k], a[start + k + length // 2] * wk
                a[start + k], a[start + k + length // 2] = u + v, u - v
                wk *= w
        length *= 2
    power = 0.0
    for k in range(n):
        power += (k + 1) * abs(a[k]) ** 2
    return power


def longest_run(x, threshold):
    best, run = 0.0, 0.0
    for v in x:
        if v > threshold:
            run += v
            best = max(best, run)
        else:
            run = 0.0
    return best


def ray(center, radius, direction):
    """Where a ray from the origin meets a sphere; nothing if it misses."""
    b = direction @ center
    under = b * b - center @ center * (direction @ direction) + radius**2 * (direction @ direction)
    if under < 0:
        return 0.0
    t = (b - math.sqrt(under)) / (direction @ direction)
    if t < 0:
        return -t
    normal = (t * direction - center) / radius
    return max(normal @ np.array([0.3, 0.5, -0.8]), 0.0) + t


def parallel_sum(x, p):
    total = 0.0
    for i in numba.prange(x.size):
        total += math.exp(-p * x[i]) * x[i]
    return total


KNOTS = np.array([0.0, 0.5, 1.2, 2.0, 2.4, 3.1, 4.0, 4.5, 5.0])
METHODS = [
    (thomas, (RNG.normal(size=4), 4 + RNG.random(5), RNG.normal(size=4), RNG.normal(size=5))),
    (convolution, (RNG.normal(size=6), RNG.normal(size=3))),
    (cholesky, (RNG.normal(size=(4, 4)), RNG.normal(size=4))),
    (adaptive, (np.array([1.5, 0.2]), 0.3, 3.9, 3)),
    (kalman, (RNG.normal(size=2), np.eye(2), np.array([[1.0, 0.2], [0.0, 0.9]]), 0.1 * np.eye(2), np.array([[1.0, 0.3]]),
              np.array([[0.4]]), RNG.normal(size=(4, 1)))),
    (hidden_markov, (np.array([0.3, 0.7]), np.array([[0.8, 0.2], [0.4, 0.6]]), RNG.random((2, 3)), np.array([0, 2, 1, 1, 0]))),
    (viterbi, (RNG.normal(size=(5, 3)), RNG.normal(size=(3, 3)))),
    (time_warping, (RNG.normal(size=5), RNG.normal(size=6))),
    (edit_cost, (RNG.normal(size=4), RNG.normal(size=5), 0.6)),
    (particles_in_cells, (RNG.random(5) * 8, RNG.normal(size=5), 0.7, 3)),
    (sparse_product, (RNG.normal(size=5), np.array([0, 2, 1, 0, 3]), np.array([0, 2, 3, 5]), RNG.normal(size=4))),
    (american_put, (36.3, 40.0, 0.06, 0.2, 1.0, 12)),
    (conjugate_gradients, (RNG.normal(size=(4, 4)), RNG.normal(size=4), 9)),
    (bisection, (5.0,)),
    (reactions, (np.array([2.0, 0.3]), 4, 3.0)),
    (bodies, (1 + RNG.random(3), RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3)), 3)),
    (pivoted, (RNG.normal(size=(4, 4)), RNG.normal(size=4))),
    (quickselect, (RNG.normal(size=9), 4)),
    (warped, (RNG.normal(size=(5, 6)), np.array([0.37, 0.52]), 0.11)),
    (spline, (KNOTS, RNG.normal(size=5), 2.2)),
    (triangular, (RNG.normal(size=(4, 4)) + 3 * np.eye(4), RNG.normal(size=4))),
    (de_casteljau, (RNG.normal(size=(5, 2)), 0.3)),
    (horner, (RNG.normal(size=5), 0.7)),
    (softmax_attention, (RNG.normal(size=(2, 3)), RNG.normal(size=(4, 3)), RNG.normal(size=(4, 2)))),
    (gauss_seidel, (RNG.normal(size=(5, 5)), RNG.normal(size=(5, 5)), 3)),
    (upwind, (RNG.normal(size=6), RNG.normal(size=6), 4)),
    (median_of_window, (RNG.normal(size=8), 5)),
    (power_method, (RNG.random((4, 4)), 6)),
    (jacobi_rotations, (RNG.normal(size=(3, 3)), 3)),
    (garch, (RNG.normal(size=9), 0.1, 0.2, 0.7)),
    (gru, (RNG.normal(size=(6, 3)), RNG.normal(size=(6, 2)), RNG.normal(size=6), RNG.normal(size=(4, 3)))),
    (layered, ((RNG.normal(size=(4, 3)), RNG.normal(size=(5, 4)), RNG.normal(size=(2, 5))), RNG.normal(size=3))),
    (soft_sort, (RNG.normal(size=5), 2.0)),
    (simpson, (0.0, 1.5, 8, 0.8)),
    (adaptive_quadrature, (0.1, 2.3, 0.7)),
    (fourier, (RNG.normal(size=7), 2)),
    (radix_two, (RNG.normal(size=8),)),
    (longest_run, (np.array([0.5, 1.2, -0.3, 0.7, 0.9, 0.4, -1.0, 0.2]), 0.1)),
    (ray, (np.array([0.2, 0.1, 3.0]), 1.1, np.array([0.05, 0.02, 1.0]))),
    (parallel_sum, (RNG.normal(size=6), 0.4)),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args"), METHODS, ids=[f.__name__ for f, _ in METHODS])
def test_a_numerical_method_has_the_derivatives_of_the_plain_tier_and_of_differences(f, args):
    check(f, *args, tolerance=1e-10)
