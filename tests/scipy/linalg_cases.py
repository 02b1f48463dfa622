"""Arguments that move along random directions, so that one test sees every argument of a function, real or complex."""

import numpy as np
from tests.scipy.agreement import agrees

X = np.array([0.3, -0.2])


def matrix(seed, m, n=None, is_complex=False):
    draw = np.random.default_rng(seed)
    a = draw.normal(size=(m, m if n is None else n))
    return a + 1j * draw.normal(size=a.shape) if is_complex else a


def vector(seed, n, is_complex=False):
    return matrix(seed, n, 1, is_complex)[:, 0]


def positive(seed, n, is_complex=False):
    a = matrix(seed, n, n, is_complex)
    return a @ a.conj().T + n * np.eye(n)


def hermitian(seed, n, is_complex=False):
    a = matrix(seed, n, n, is_complex)
    return a + a.conj().T


def directions(a, seed):
    """Two random matrices of the kind of `a`, small beside it."""
    draw = np.random.default_rng(seed)
    size = 0.1 * (1 + np.abs(a).max(initial=0.0)) / np.sqrt(max(a.size, 1))
    found = []
    for _ in range(2):
        d = draw.normal(size=a.shape)
        if np.iscomplexobj(a):
            d = d + 1j * draw.normal(size=a.shape)
        found.append(size * d)
    return found


def moves(f, *arguments, nested=True, tolerance=1e-6):
    """Assert that f is differentiated right in all of `arguments`, in every mode and once nested."""
    arguments = [np.asarray(a) for a in arguments]
    steps = [directions(a, 70 + k) for k, a in enumerate(arguments)]

    def along(x):
        moved = [a + (x[0] - X[0]) * d[0] + (x[1] - X[1]) * d[1] for a, d in zip(arguments, steps)]
        z = f(*moved)
        parts = z if isinstance(z, (tuple, list)) else (z,)
        numbers = []
        for part in parts:
            if np.asarray(part).dtype.kind not in "fc":
                continue
            flat = np.ravel(part)
            numbers += [np.real(flat), np.imag(flat)] if np.iscomplexobj(flat) else [flat]
        return np.concatenate(numbers)

    agrees(along, X, tolerance=tolerance, nested=nested)
