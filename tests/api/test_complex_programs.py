"""Complex NumPy programs: both modes against differences along 1 and i, at first and second order."""

import cmath

import numpy as np
import pytest

from plaingrad import grad, hvp, jvp, vhp, wirtinger

random = np.random.default_rng(0)
c = lambda *s: random.normal(size=s) + 1j * random.normal(size=s)
A, B, w = c(3, 3), c(3, 3), c(9)
m = lambda z: z.reshape(3, 3)
Z = np.random.default_rng(5).normal(size=9) + 1j * np.random.default_rng(6).normal(size=9)

PROGRAMS = {
    "square": lambda z: z * z,
    "conj": lambda z: np.conj(z) * z * w,
    "absq": lambda z: np.abs(z) ** 2,
    "real": lambda z: z.real * z,
    "imag": lambda z: z.imag**2,
    "angle": lambda z: np.angle(z),
    "exp": lambda z: np.exp(z) * np.conj(z),
    "matmul": lambda z: m(z) @ A @ m(z).conj(),
    "vdot": lambda z: np.vdot(z, w * z),
    "dot": lambda z: np.dot(z, w) * z[0].conj(),
    "inner": lambda z: np.inner(z, z.conj()),
    "outer": lambda z: np.outer(z, z.conj())[0],
    "einsum": lambda z: np.einsum("ij,jk->ik", m(z), m(z).conj()),
    "det": lambda z: np.linalg.det(m(z)),
    "inv": lambda z: np.linalg.inv(m(z)) * B,
    "solve": lambda z: np.linalg.solve(m(z), w[:3]),
    "norm": lambda z: np.linalg.norm(z),
    "slogdet": lambda z: np.linalg.slogdet(m(z))[1],
    "chol": lambda z: np.linalg.cholesky(m(z) @ m(z).conj().T + np.eye(3)),
    "eigvalsh": lambda z: np.linalg.eigvalsh(m(z) @ m(z).conj().T),
    "eigh": lambda z: np.linalg.eigvalsh(m(z) + m(z).conj().T),
    "svd": lambda z: np.linalg.svd(m(z))[1],
    "fft": lambda z: np.fft.fft(z) * w,
    "rfft": lambda z: np.fft.rfft(z.real),
    "irfft": lambda z: np.fft.irfft(z),
    "hfft": lambda z: np.fft.hfft(z),
    "ihfft": lambda z: np.fft.ihfft(z.real),
    "fft2": lambda z: np.fft.fft2(m(z)),
    "fftn n": lambda z: np.fft.fft(z, 12),
    "fftshift": lambda z: np.fft.fftshift(z) * z,
    "sum": lambda z: np.sum(z**2),
    "prod": lambda z: np.prod(z),
    "cumsum": lambda z: np.cumsum(z) * w,
    "cumprod": lambda z: np.cumprod(z),
    "mean": lambda z: np.mean(z * np.conj(z)),
    "var": lambda z: np.var(z),
    "std": lambda z: np.std(z),
    "where": lambda z: np.where(z.real > 0, z, z.conj()),
    "sqrt": lambda z: np.sqrt(z),
    "log": lambda z: np.log(z),
    "power": lambda z: z**2.5,
    "power c": lambda z: z ** (1 + 1j),
    "rpow": lambda z: 2.0**z,
    "absolute": lambda z: np.absolute(z) * z,
    "sign": lambda z: z / np.abs(z),
    "tanh": lambda z: np.tanh(z),
    "arctan": lambda z: np.arctan(z),
    "arcsin": lambda z: np.arcsin(z),
    "sinh": lambda z: np.sinh(z),
    "recip": lambda z: np.reciprocal(z),
    "divide": lambda z: z / z[::-1].conj(),
    "setitem": lambda z: (lambda y: (y.__setitem__(slice(0, 3), z[3:6] * z[:3].conj()), y)[1])(z * 2.0),
    "setreal": lambda z: (lambda y: (y.real.__setitem__(0, z[1].imag), y)[1])(z * z),
    "astype": lambda z: z.real.astype(complex) * z,
    "r2c": lambda z: (z.real * 1j + z.imag) * w,
    "view": lambda z: z.view(float) ** 2,
    "complex(list)": lambda z: np.array([complex(v.real, -v.imag) * v for v in z]),
    "cmath": lambda z: [cmath.exp(z[0]) * z[1].conjugate(), cmath.phase(z[2]), abs(z[3])],
    "polar": lambda z: cmath.rect(*cmath.polar(z[0])),
    "tolist": lambda z: sum(v * v.conjugate() for v in z.tolist()),
    "kron": lambda z: np.kron(z[:2], z[2:4].conj()),
    "conv": lambda z: np.convolve(z[:3], z[3:].conj()),
    "trace": lambda z: np.trace(m(z) @ m(z).conj()),
    "H": lambda z: m(z).conj().T @ m(z),
    "interp": lambda z: np.interp(z.real, np.linspace(-3, 3, 9), w),
    "sort": lambda z: np.sort(z),
    "mpow": lambda z: np.linalg.matrix_power(m(z), 3),
    "pinv": lambda z: np.linalg.pinv(m(z)),
    "qr": lambda z: np.abs(np.linalg.qr(m(z))[1]),
    "isclose": lambda z: np.real_if_close(z),
    "angle2": lambda z: np.arctan2(z.imag, z.real),
    "exp1j": lambda z: np.exp(1j * np.abs(z)),
    "log abs": lambda z: np.log(np.abs(z)),
    "inplace": lambda z: (lambda y: [y.__imul__(z), y.__iadd__(z.conj()), y.__itruediv__(w), y][-1])(z * 1.0),
}


def flat(y):
    return np.array(y).ravel() if isinstance(y, (list, tuple)) else np.asarray(y).ravel()


def rows(derivative):
    if isinstance(derivative, (list, tuple)):
        return np.concatenate([rows(part) for part in derivative])
    return np.asarray(derivative).reshape(-1, 9)


def differences(f, z, direction, h=1e-6):
    steps = h * direction * np.eye(9)
    return np.array([(flat(f(z + step)) - flat(f(z - step))) / (2 * h) for step in steps]).T


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_derivatives_of_a_complex_program(name, mode):
    f = PROGRAMS[name]
    along_1, along_i = differences(f, Z, 1.0), differences(f, Z, 1j)
    by_z, by_conjugate = wirtinger(f, mode=mode)(Z)
    for found, expected in (
        (by_z, (along_1 - 1j * along_i) / 2),
        (by_conjugate, (along_1 + 1j * along_i) / 2),
    ):
        np.testing.assert_allclose(rows(found), expected, atol=1e-7 * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_of_a_complex_program_in_three_ways(name):
    f = PROGRAMS[name]

    def weighted(z):
        y = f(z)
        entries = list(y) if isinstance(y, (list, tuple)) else list(np.ravel(y))
        return sum(np.real(v * np.conj(v)) * (k + 1) for k, v in enumerate(entries))

    v = Z[::-1] * 1j
    expected = (grad(weighted)(Z + 1e-6 * v) - grad(weighted)(Z - 1e-6 * v)) / 2e-6
    atol = 1e-5 * (1 + np.abs(expected).max())
    np.testing.assert_allclose(jvp(grad(weighted), (Z,), (v,))[1], expected, atol=atol)
    for product in (hvp, vhp):
        np.testing.assert_allclose(product(weighted, (Z,), (v,))[0], expected, atol=atol)
