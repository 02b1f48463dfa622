"""Functions of the array API standard, each in a program of one array: `f(xp, x)`, with x of shape (2, 3)."""

from __future__ import annotations

import numpy as np

X = np.array([[0.3, 0.7, 0.45], [0.9, 0.2, 0.6]])
V = np.array([[0.3, -0.2, 0.5], [0.1, -0.4, 0.7]])
UNARY = (
    "abs acos asin asinh atan atanh conj cos cosh exp expm1 log log10 log1p log2 negative positive real reciprocal sign "
    "signbit sin sinh sqrt square tan tanh ceil floor round trunc isfinite isinf isnan logical_not"
)
BINARY = (
    "add atan2 copysign divide floor_divide hypot logaddexp maximum minimum multiply nextafter pow remainder subtract "
    "equal greater greater_equal less less_equal not_equal"
)
REDUCTIONS = "max mean min prod std sum var all any argmax argmin count_nonzero"



def number(xp, z):
    """What has no derivative as an array of numbers."""
    return xp.astype(z, xp.float64) if hasattr(z, "dtype") and z.dtype != xp.float64 else z


def functions():
    found = {name: (lambda xp, x, name=name: number(xp, getattr(xp, name)(x))) for name in UNARY.split()}
    found["acosh"] = lambda xp, x: xp.acosh(x + 1.5)
    found |= {name: (lambda xp, x, name=name: number(xp, getattr(xp, name)(x, x * x + 0.1))) for name in BINARY.split()}
    found |= {name: (lambda xp, x, name=name: number(xp, getattr(xp, name)(x, axis=1))) for name in REDUCTIONS.split()}
    found["nextafter"] = lambda xp, x: number(xp, xp.nextafter(x, x * 2) > x)
    found["logical_and"] = lambda xp, x: number(xp, xp.logical_and(x > 0.4, x < 0.8)) * x
    return found | {
        "clip": lambda xp, x: xp.clip(x, min=0.25, max=0.65),
        "cumulative_sum": lambda xp, x: xp.cumulative_sum(x, axis=1),
        "cumulative_prod": lambda xp, x: xp.cumulative_prod(x, axis=1),
        "mean of all": lambda xp, x: xp.mean(x) * x,
        "sum with axes kept": lambda xp, x: xp.sum(x, axis=0, keepdims=True) * x,
        "var with correction": lambda xp, x: xp.var(x, axis=1, correction=1),
        "matmul": lambda xp, x: xp.matmul(x, xp.matrix_transpose(x)),
        "@": lambda xp, x: x @ x.T,
        "tensordot": lambda xp, x: xp.tensordot(x, x, axes=((0, 1), (0, 1))),
        "vecdot": lambda xp, x: xp.vecdot(x, x + 1),
        "matrix_transpose": lambda xp, x: xp.matrix_transpose(x),
        "broadcast_to": lambda xp, x: xp.broadcast_to(x, (2, 2, 3)),
        "broadcast_arrays": lambda xp, x: xp.broadcast_arrays(x, x[0, :])[1] * x,
        "concat": lambda xp, x: xp.concat([x, x * x], axis=1),
        "expand_dims": lambda xp, x: xp.expand_dims(x, axis=1) * x,
        "flip": lambda xp, x: xp.flip(x, axis=1),
        "moveaxis": lambda xp, x: xp.moveaxis(x, 0, 1),
        "permute_dims": lambda xp, x: xp.permute_dims(x, (1, 0)),
        "repeat": lambda xp, x: xp.repeat(x, 2, axis=1),
        "reshape": lambda xp, x: xp.reshape(x, (3, 2)),
        "roll": lambda xp, x: xp.roll(x, 1, axis=1),
        "squeeze": lambda xp, x: xp.squeeze(xp.expand_dims(x, axis=0), axis=0),
        "stack": lambda xp, x: xp.stack([x, x * x], axis=1),
        "tile": lambda xp, x: xp.tile(x, (1, 2)),
        "unstack": lambda xp, x: xp.unstack(x, axis=1)[1] * xp.unstack(x, axis=1)[0],
        "where": lambda xp, x: xp.where(x > 0.5, x * x, x),
        "take": lambda xp, x: xp.take(x, xp.asarray([0, 2, 2]), axis=1),
        "sort": lambda xp, x: xp.sort(x, axis=1),
        "argsort": lambda xp, x: number(xp, xp.argsort(x, axis=1)) * x,
        "searchsorted": lambda xp, x: number(xp, xp.searchsorted(xp.asarray([0.25, 0.5]), x[0, :])) * x,
        "nonzero": lambda xp, x: number(xp, xp.nonzero(x > 0.4)[1]),
        "unique_values": lambda xp, x: xp.unique_values(x),
        "zeros_like": lambda xp, x: xp.zeros_like(x) + x,
        "full_like": lambda xp, x: xp.full_like(x, 2.0) * x,
        "asarray": lambda xp, x: xp.asarray(x) * 2,
        "astype": lambda xp, x: xp.astype(x, xp.float64) * x,
        "eye": lambda xp, x: xp.eye(2) @ x,
        "arange": lambda xp, x: xp.arange(3.0) * x,
        "linspace": lambda xp, x: xp.linspace(0, 1, 3) * x,
        "tril": lambda xp, x: xp.tril(x),
        "triu": lambda xp, x: xp.triu(x, k=1),
        "meshgrid": lambda xp, x: xp.meshgrid(x[0, :], x[1, :], indexing="ij")[0] * 2,
        "isdtype": lambda xp, x: x * x if xp.isdtype(x.dtype, "real floating") else x,
        "item": lambda xp, x: x[0, 1] * x[1, 2],
        "slice": lambda xp, x: x[:, ::2] * x[0, :2],
        "mask": lambda xp, x: x[x > 0.4] ** 2,
        "operators": lambda xp, x: abs(-x) ** 2 / (1 + x) - 3 * x % 2 + (2 - x) // 1,
        "shape": lambda xp, x: x * x.shape[0] / x.ndim,
        "linalg.norm": lambda xp, x: xp.linalg.vector_norm(x),
        "linalg.matrix_norm": lambda xp, x: xp.linalg.matrix_norm(x),
        "linalg.det": lambda xp, x: xp.linalg.det(x @ x.T + xp.eye(2)),
        "linalg.inv": lambda xp, x: xp.linalg.inv(x @ x.T + xp.eye(2)),
        "linalg.solve": lambda xp, x: xp.linalg.solve(x @ x.T + xp.eye(2), x),
        "linalg.cholesky": lambda xp, x: xp.linalg.cholesky(x @ x.T + xp.eye(2)),
        "linalg.qr": lambda xp, x: abs(xp.linalg.qr(x.T).R),
        "linalg.svdvals": lambda xp, x: xp.linalg.svdvals(x),
        "linalg.eigvalsh": lambda xp, x: xp.linalg.eigvalsh(x @ x.T),
        "linalg.slogdet": lambda xp, x: xp.linalg.slogdet(x @ x.T + xp.eye(2)).logabsdet,
        "linalg.pinv": lambda xp, x: xp.linalg.pinv(x),
        "linalg.matrix_power": lambda xp, x: xp.linalg.matrix_power(x @ x.T, 3),
        "linalg.trace": lambda xp, x: xp.linalg.trace(x @ x.T),
        "linalg.diagonal": lambda xp, x: xp.linalg.diagonal(x @ x.T),
        "linalg.outer": lambda xp, x: xp.linalg.outer(x[0, :], x[1, :]),
        "linalg.cross": lambda xp, x: xp.linalg.cross(x[0, :], x[1, :]),
        "fft.rfft": lambda xp, x: abs(xp.fft.rfft(x)),
        "fft.fft": lambda xp, x: xp.real(xp.fft.ifft(xp.fft.fft(x) ** 2)),
    }  # fmt: skip


FUNCTIONS = functions()


def program(xp, f):
    """The sum of the elements of what `f` makes of an array of this namespace, with weights: a number of the namespace."""

    def weighted(x):
        z = f(xp, x)
        if not getattr(z, "ndim", 0):
            return z * z
        weights = xp.reshape(xp.arange(1.0, float(np.prod(z.shape)) + 0.5, dtype=xp.float64), z.shape)
        return xp.sum(z * z * weights)

    return weighted


def slope(f, v, h=1e-3):
    """The derivative of f(numpy array) along v at X, by differences of eighth order."""
    parts = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
    return sum(w * (f(X + k * h * v) - f(X - k * h * v)) for k, w in parts) / h


def main():
    """Which functions have right derivatives over arrays of JAX, of each in forward and in reverse mode."""
    import jax

    import plaingrad

    jax.config.update("jax_enable_x64", True)
    made = jax.numpy.asarray
    right = 0
    for name, function in FUNCTIONS.items():
        f = program(jax.numpy, function)
        try:
            forward = float(plaingrad.jvp(f, (made(X),), (made(V),))[1])
            np.testing.assert_allclose(forward, slope(lambda a, f=f: float(f(made(a))), V), rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose((plaingrad.grad(f)(made(X)) * V).sum(), forward, rtol=1e-10, atol=1e-12)
            right += 1
        except Exception as error:  # what JAX refuses, it refuses by errors of many kinds
            print(f"{name}: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
    print(f"{right} of {len(FUNCTIONS)} right")


if __name__ == "__main__":
    main()
