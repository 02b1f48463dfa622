"""Realistic NumPy programs through the engine, against closed forms or central differences."""

import numpy as np
import pytest

import plaingrad
from plaingrad import grad, value_and_grad
from plaingrad.errors import MissingRuleError

rng = np.random.default_rng(3)


def differences(f, x, h=1e-5):
    g = np.zeros(np.shape(x))
    for i in np.ndindex(np.shape(x)):
        d = np.zeros(np.shape(x))
        d[i] = h
        g[i] = (f(x + d) - f(x - d)) / (2 * h)
    return g


def agrees(f, x, rtol=1e-5, atol=1e-7):
    value, x_bar = value_and_grad(f)(x.copy())
    np.testing.assert_array_equal(value, f(x.copy()))
    np.testing.assert_allclose(x_bar, differences(f, x), rtol=rtol, atol=atol)
    return x_bar


def test_a_multilayer_perceptron_has_the_gradient_written_by_hand():
    x, y = rng.standard_normal((8, 3)), rng.standard_normal((8, 1))
    w1, b1, w2 = rng.standard_normal((3, 5)), rng.standard_normal(5), rng.standard_normal((5, 1))

    def loss(parameters):
        w1, b1, w2 = parameters
        return np.mean((np.tanh(x @ w1 + b1) @ w2 - y) ** 2)

    w1_bar, b1_bar, w2_bar = grad(loss)([w1, b1, w2])
    h = np.tanh(x @ w1 + b1)
    z_bar = 2 * (h @ w2 - y) / y.size
    a_bar = (z_bar @ w2.T) * (1 - h * h)
    np.testing.assert_allclose(w2_bar, h.T @ z_bar)
    np.testing.assert_allclose(w1_bar, x.T @ a_bar)
    np.testing.assert_allclose(b1_bar, a_bar.sum(0))


def test_softmax_with_cross_entropy_has_its_textbook_gradient():
    labels = np.array([0, 2, 1, 1])

    def loss(z):
        z = z - z.max(axis=1, keepdims=True)
        log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        return -log_p[np.arange(4), labels].mean()

    z = rng.standard_normal((4, 3))
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    p[np.arange(4), labels] -= 1
    np.testing.assert_allclose(grad(loss)(z), p / 4)


def test_a_mixture_of_gaussians():
    data = rng.standard_normal((20, 2))

    def log_likelihood(parameters):
        logits, means, roots = parameters[0, :3], parameters[1:3].T[:3], parameters[3:].reshape(-1)[:12].reshape(3, 2, 2)
        precision = roots @ np.swapaxes(roots, -1, -2) + np.eye(2)
        difference = data[:, None, :] - means[None]
        quadratic = np.einsum("nki,kij,nkj->nk", difference, precision, difference)
        weights = logits - np.logaddexp.reduce(logits)
        terms = weights + 0.5 * np.linalg.slogdet(precision)[1] - 0.5 * quadratic
        top = np.max(terms, axis=1, keepdims=True)
        return np.sum(top[:, 0] + np.log(np.sum(np.exp(terms - top), axis=1)))

    agrees(log_likelihood, rng.standard_normal((7, 3)) * 0.5)


def test_a_kalman_filter():
    observations = rng.standard_normal((6, 1))

    def negative_log_likelihood(theta):
        a = np.array([[1.0, theta[0]], [0.0, theta[1]]])
        q = np.diag(np.exp(theta[2:4]))
        h, r = np.array([[1.0, 0.0]]), np.exp(theta[4]) * np.eye(1)
        m, p, total = np.zeros(2), np.eye(2), 0.0
        for y in observations:
            m, p = a @ m, a @ p @ a.T + q
            s = h @ p @ h.T + r
            k = np.linalg.solve(s.T, h @ p.T).T
            e = y - h @ m
            total += 0.5 * (e @ np.linalg.inv(s) @ e + np.log(np.linalg.det(s)))
            m = m + k @ e
            p = (np.eye(2) - k @ h) @ p
        return total

    agrees(negative_log_likelihood, np.array([0.3, 0.9, -1.0, -0.5, -0.2]))


def test_a_stencil_that_writes_in_place():
    def energy(u):
        u = u.copy()
        for _ in range(4):
            u[1:-1, 1:-1] += 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
            u[0], u[-1] = u[1], u[-2] * 2
        return np.sum(u**3)

    agrees(energy, rng.standard_normal((5, 6)))


def test_attention_by_einsum():
    k, v = rng.standard_normal((2, 5, 2, 3)), rng.standard_normal((2, 5, 2, 3))

    def f(q):
        scores = np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(3.0)
        scores = np.where(np.tril(np.ones((4, 5), bool), 1), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return np.sum(np.einsum("bhij,bjhd->bihd", weights, v) ** 2)

    agrees(f, rng.standard_normal((2, 4, 2, 3)))


def test_fancy_reads_and_writes():
    rows, columns = np.array([0, 2, 2, 1]), np.array([1, 1, 1, 0])

    def f(x):
        y = np.zeros((3, 3))
        y[rows, columns] = x[rows, columns] ** 2  # the last of equal places stays
        y[y > 0.5] *= 2.0
        y[[0, 2]] += x[[2, 0]] * x[1]
        y[:, ::-2] = y[:, ::-2] - x[..., :2]
        mask = x > 0
        y[mask] = x[mask] * 3
        return np.sum(y * y)

    agrees(f, rng.standard_normal((3, 3)))


def test_masked_operations_with_out_and_where():
    def f(x):
        y = np.zeros_like(x)
        np.divide(1.0, x, out=y, where=np.abs(x) > 0.3)
        np.log(x, out=y, where=x > 0.5)
        np.add(y, x, out=y)
        total = np.zeros(3)
        np.sum(y, axis=0, out=total)
        y.cumsum(axis=0, out=y)
        return np.sum(y * total)

    x = np.array([[0.1, 0.7, -0.8], [0.0, 1.2, 0.4]])
    agrees(f, x)


def test_ufunc_at_with_repeated_indices():
    edges = np.array([0, 1, 1, 3, 0, 1])

    def f(x):
        degree = np.zeros(4)
        np.add.at(degree, edges, x)
        np.multiply.at(degree, edges[:3], x[:3])
        np.subtract.at(degree, [2, 2], x[0])
        np.maximum.at(degree, [0, 3], x[4])
        return np.sum(degree**2)

    agrees(f, rng.standard_normal(6))


def test_a_list_that_grows_between_call_and_pullback():
    def f(x):
        parts, total = [], 0.0
        for k in range(3):
            parts.append(x * (k + 1.0))
            total = total + np.sum(np.stack(parts) ** 2) + np.sum(np.concatenate(parts)) + np.max(parts) + np.sum(parts)
        return total

    agrees(f, rng.standard_normal(3))


def test_an_index_array_that_is_changed_after_it_was_used():
    def f(x):
        index = np.array([0, 1, 1])
        counts = np.array([1, 2, 0])
        y = np.take(x, index) ** 2
        z = np.repeat(x, counts)
        index[:] = 2
        counts[:] = [0, 0, 3]
        return np.sum(y) + np.sum(z**3)

    agrees(f, rng.standard_normal(3))


def test_a_covariance_is_whitened_by_its_cholesky_factor():
    def f(x):
        c = np.cov(x, rowvar=False) + 0.1 * np.eye(3)
        chol = np.linalg.cholesky(c)
        white = np.linalg.solve(chol, (x - x.mean(0)).T)
        return np.sum(white**4) + np.linalg.norm(c) + np.linalg.slogdet(c)[1] + np.trace(np.linalg.inv(c))

    agrees(f, rng.standard_normal((7, 3)))


def test_a_spectrum_is_smoothed_by_transforms():
    def f(x):
        spectrum = np.fft.rfft(x, n=12)
        spectrum[3:] = 0
        smooth = np.fft.irfft(spectrum * np.exp(-0.1j * np.arange(7)), n=10)
        return np.sum(np.abs(spectrum) ** 2) + np.sum(smooth**3) + np.sum(np.abs(np.fft.fft2(np.outer(x, x))))

    agrees(f, rng.standard_normal(9))


def test_interpolation_polynomials_and_quantiles():
    grid = np.linspace(0.0, 1.0, 5)

    def f(x):
        y = np.interp(np.abs(x[:4]) % 1.0, grid, x[:5])
        fit = np.polyfit(grid, x[:5], 2)
        return np.sum(y**2) + np.polyval(fit, 0.3) + np.median(x) * np.percentile(x, 70) + np.trapezoid(x**2, dx=0.1)

    if not hasattr(np, "trapezoid"):
        pytest.skip("np.trapezoid is of NumPy 2")
    agrees(f, rng.uniform(0.05, 0.9, 8))


def test_views_and_writes_through_them():
    def f(x):
        y = x.copy()
        y.T[0] *= 2
        d = np.einsum("ii->i", y[:3, :3])
        d[...] = d**2
        y.reshape(-1)[::3] += 1.0
        y.flat[4] = y.flat[5] * y.flat[6]
        np.fill_diagonal(y[::-1], x[0, 0])
        y.sort(axis=1)
        return np.sum(y * np.arange(12.0).reshape(3, 4))

    agrees(f, rng.standard_normal((3, 4)))


def test_numbers_of_every_kind_meet_arrays():
    def f(x):
        a, b = float(x[0]), x[1].item()
        c, d = np.float64(x[2]), x.tolist()[3]
        y = np.array([a, b * c, [d][0], x[0] * 1.0])
        z = np.array([[a, b], [c, d]]) @ np.asarray((a, d))
        return np.sum(y * y) + z.sum() + np.hypot(a, c) + np.linalg.norm([a, b, c, d])

    agrees(f, rng.standard_normal(4))


def test_flat_iterators_of_arrays_without_axes():
    def f(x):
        y, z = np.empty(()), np.empty((2, 0))
        y.flat[0] = x[0]
        y.flat[np.array([0])] *= x[1]
        z.flat[:] = x[0]
        iterator = y.flat
        return y.flat[-1] * next(iterator) + y.flat[:].sum() + y.flat[()][0] ** 2 + sum(y.flat) + len(list(z.flat))

    agrees(f, np.array([1.3, 0.7]))


@pytest.mark.parametrize("k", [6, -7])
def test_an_index_outside_of_a_flat_iterator_is_an_index_error(k):
    def f(x):
        for work in (lambda: x.flat[k], lambda: x.flat.__setitem__(k, x[0, 0])):
            with pytest.raises(IndexError, match=f"index {k} is out of bounds for size 6"):
                work()
        return x.sum()

    assert f(np.ones((2, 3))) == 6.0
    np.testing.assert_array_equal(grad(f)(np.ones((2, 3))), np.ones((2, 3)))


def test_flat_iterators_read_and_write():
    def f(x):
        y = x.copy()
        y.flat[1] = y.flat[2] * 3
        y.flat[[0, 3]] = y.flat[[4, 5]] ** 2
        y.flat[-2:] = y.flat[0]
        total = 0.0
        for place, value in enumerate(y.flat):
            total += place * value**2
        iterator = x.T.flat
        next(iterator)
        total += next(iterator) ** 2 + x.flat.copy().prod()
        for (i, j), value in np.ndenumerate(x):
            total += value**2 * (i - 2 * j)
        return total

    agrees(f, rng.standard_normal((2, 3)))


def test_flat_iterators_become_arrays():
    agrees(lambda x: np.asarray(x.T.flat)[1] ** 2 + np.array(x.flat).prod() + np.sum(x.T.flat) ** 2, rng.standard_normal((2, 3)))


def test_python_functions_element_by_element():
    def step(a, b=1.0):
        return a * a * b if a > 0 else -a

    def pair(a):
        return a**2, 3 * a

    def f(x):
        squares, triples = np.vectorize(pair)(x)
        total = np.sum(np.vectorize(step)(x) * squares) + np.sum(np.vectorize(step, otypes=[float])(x, 2.0)) + triples.prod()
        rows = np.apply_along_axis(lambda row: row * row.sum(), 1, x)
        norms = np.vectorize(lambda row: row @ row, signature="(n)->()")(x)
        total += float(np.frompyfunc(step, 1, 1)(x).sum())
        return total + rows.sum() + np.sum(norms**2) + np.piecewise(x, [x < 0], [lambda v: v**2, lambda v: -v]).sum()

    agrees(f, rng.standard_normal((2, 3)))


def test_numpy_functions_that_are_python_code():
    def f(x):
        a, b = np.split(x, 2, axis=1)
        total = np.average(x, weights=x**2) + np.cov(x).sum() + np.gradient(x, axis=1).prod() + np.ediff1d(x).sum()
        total += (np.pad(x, 1, mode="edge") ** 2).sum() + np.kron(a, b).sum() + np.unwrap(x[0] * 9).sum() + np.sinc(x).sum()
        total += np.insert(x[0], 1, x[1, 0]).prod() + np.delete(x, 1, 1).prod() + np.block([[a, b]]).prod()
        total += np.unique(x).prod() + np.geomspace(1.5 + x[0, 0] ** 2, 9.0, 4).sum() + np.logspace(x[0, 1], x[1, 1], 3).sum()
        total += np.select([x > 0.5, x < -0.5], [x**2, x**3], 0.1).sum() + np.linalg.cond(x[:, :2]) + np.vander(x[0]).sum()
        total += np.linalg.multi_dot([x, x.T, x]).sum() + np.linalg.matrix_power(a @ b.T, 3).sum() + np.real(np.roots([1.0, 0.2, x[0, 0]])).prod()
        total += np.histogram(np.arange(4.0), bins=2, weights=x[0])[0].prod() + np.angle(x[0] + 1j * x[1]).sum()
        total += np.r_[x[0], 2.0, x[1]].prod() + np.c_[x[0], x[1]].prod() + np.atleast_3d(x).sum() + np.linalg.norm(x, 2)
        return total + np.abs(np.fft.rfft2(x)).sum() + np.fft.irfftn(np.fft.rfftn(x)).prod() + np.corrcoef(x)[0, 1]

    agrees(f, rng.standard_normal((2, 4)))


def test_arrays_in_the_hands_of_operators_called_by_name():
    class Quantity(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            plain = [np.asarray(x).view(np.ndarray) if isinstance(x, Quantity) else x for x in inputs]
            return super().__array_ufunc__(ufunc, method, *plain, **options)

    def f(x):
        total = sum(row.__matmul__(row) for row in x.__iter__())
        total += x[0, 0].__mul__(x[0, 1]) + abs(complex(x[0, 1:2].reshape(())) + 1j)
        return total + np.sum(np.multiply(x.view(Quantity), x))

    agrees(f, rng.standard_normal((2, 3)))


def test_random_numbers_move_with_their_parameters():
    def f(x):
        generator = np.random.default_rng(7)
        noise = generator.standard_normal(4) + generator.random(4)
        generator.standard_normal(out=noise)
        y = generator.normal(x, 0.5) * noise + generator.uniform(-1.0, x**2)
        generator.shuffle(y)
        return np.sum(y**2) + np.sum(np.random.RandomState(3).exponential(x**2) * generator.permutation(x))

    agrees(f, rng.standard_normal(4))


def complex_differences(f, x, h=1e-5):
    """x_bar + i y_bar of a real function of x + i y."""
    g = np.zeros(x.shape, complex)
    for i in np.ndindex(x.shape):
        d = np.zeros(x.shape)
        d[i] = h
        g[i] = (f(x + d) - f(x - d)) / (2 * h) + 1j * (f(x + 1j * d) - f(x - 1j * d)) / (2 * h)
    return g


weight = np.random.default_rng(4).standard_normal((3, 3)) + 1j * np.random.default_rng(5).standard_normal((3, 3))


def spectral_projection(vectors, values):
    """A function of eigenvectors that does not depend on their phases."""
    return np.sum(np.abs(np.conj(vectors.T) @ weight @ vectors) ** 2 * np.arange(1.0, 4.0)) + np.sum(np.abs(values) ** 3)


COMPLEX = {
    "eigh": lambda a: spectral_projection(*np.linalg.eigh(a + np.conj(a.T))[::-1]),
    "eigh reads one triangle": lambda a: spectral_projection(*np.linalg.eigh(a)[::-1]),
    "eigh reads the other": lambda a: spectral_projection(*np.linalg.eigh(a, "U")[::-1]),
    "eig": lambda a: spectral_projection(*np.linalg.eig(a)[::-1]),
    "eigenvectors as LAPACK scales them": lambda a: np.sum(np.real(np.linalg.eig(a)[1] * weight)),
    "svd": lambda a: sum(np.sum(np.abs(np.conj(f.T) @ weight @ f) ** 2) for f in (np.linalg.svd(a)[0], np.linalg.svd(a)[2].T)),
    "svd, together": lambda a: np.sum(np.real(weight * (np.linalg.svd(a)[0] ** 1 @ np.diag([1.0, 2.0, 3.0]) @ np.linalg.svd(a)[2]))),
    "svd, tall": lambda a: np.sum(np.abs(np.linalg.svd(a[:, :2], full_matrices=False)[0].conj().T @ weight[:, :2]) ** 2),
    "svd, wide": lambda a: np.sum(np.abs(np.linalg.svd(a[:2], full_matrices=False)[2] @ weight) ** 2 * np.array([[1.0], [2.0]])),
    "qr": lambda a: np.sum(np.real(np.linalg.qr(a)[0] * weight)) + np.sum(np.abs(np.linalg.qr(a)[1]) ** 3),
    "cholesky": lambda a: np.sum(np.real(np.linalg.cholesky(a @ np.conj(a.T) + np.eye(3)) * weight)),
    "det": lambda a: np.real(np.linalg.det(a) ** 2) + np.imag(np.linalg.slogdet(a)[0]) + np.linalg.slogdet(a)[1],
    "norms": lambda a: np.linalg.norm(a) + np.linalg.norm(a, 2) + np.linalg.norm(a, 1) + np.linalg.norm(a[0], 3) + np.linalg.norm(a, "nuc"),
    "solve": lambda a: np.sum(np.abs(np.linalg.solve(a, weight) @ np.linalg.pinv(a[:, :2])[:1].T)),
    "products": lambda a: np.abs(np.vdot(a, weight)) + np.abs(np.einsum("ij,kj->", a, np.conj(a) * 1j)) + np.abs(np.inner(a, weight)).sum(),
    "transforms": lambda a: np.sum(np.abs(np.fft.fft2(a)) ** 3) + np.sum(np.fft.irfft(a) ** 3),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_a_real_function_of_complex_numbers(name):
    f = COMPLEX[name]
    a = np.random.default_rng(8).standard_normal((3, 3)) + 1j * np.random.default_rng(9).standard_normal((3, 3))
    np.testing.assert_allclose(grad(f)(a), complex_differences(f, a), rtol=1e-5, atol=1e-6)


SCALAR_METHODS = {
    **{name: () for name in "sum mean prod max min cumsum cumprod ravel flatten copy squeeze transpose item tolist".split()},
    **{name: () for name in "conj conjugate __array__ __copy__ __abs__ __neg__ __pos__ __float__ __complex__".split()},
    "__deepcopy__": ({},), "var": (), "std": (), "take": (0,), "repeat": (2,), "reshape": (1, 1), "astype": (np.complex128,),
    "clip": (0.1, 5.0), "compress": ([True],), "__getitem__": ((..., None),), "__add__": (1.5,),
    "__rpow__": (2.0,), "__truediv__": (2.0,), "round": (1,), "argmax": (), "any": (), "nonzero": None, "choose": None,
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n, a in SCALAR_METHODS.items() if a is not None and hasattr(np.float64, n)])
def test_a_method_of_a_numpy_scalar(name):
    def f(x):
        y = getattr(x[0] * x[1], name)(*SCALAR_METHODS[name])
        return np.sum(np.real(y)) * x[0]

    agrees(f, np.array([0.83, 1.1]))


@pytest.mark.parametrize("name", ["real", "imag", "T", "flat", "base"])
def test_an_attribute_of_a_numpy_scalar(name):
    def f(x):
        z = (x[0] + 2j * x[1]) * x[1]
        y = getattr(z, name)
        return np.sum(np.real(y)) if y is not None else x[0]

    if name in ("flat", "base"):
        pytest.skip("no number of its own")
    agrees(f, np.array([0.83, 1.1]))


SECOND = {
    "sum": lambda x: np.sum(x**3),
    "prod": lambda x: np.prod(x),
    "cumprod": lambda x: np.sum(np.cumprod(x.ravel()) ** 2),
    "max": lambda x: np.max(x) ** 2 * np.min(x, axis=0).sum(),
    "var": lambda x: np.var(x, axis=0).sum() * np.std(x),
    "sort": lambda x: np.sum(np.sort(x, axis=1) ** 2 * np.arange(3.0)),
    "where": lambda x: np.sum(np.where(x > 0, x**3, -(x**2))),
    "matmul": lambda x: np.sum((x @ x.T) ** 2),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x**2).sum() + np.einsum("ij->j", x**2).prod(),
    "inv": lambda x: np.sum(np.linalg.inv(x[:, :2] + 3 * np.eye(2)) ** 2),
    "det": lambda x: np.linalg.det(x[:, :2]) ** 2 + np.linalg.slogdet(x[:, :2] @ x[:, :2].T + np.eye(2))[1],
    "solve": lambda x: np.sum(np.linalg.solve(x[:, :2] + 3 * np.eye(2), x[:, 2]) ** 2),
    "cholesky": lambda x: np.sum(np.linalg.cholesky(x @ x.T + np.eye(2)) ** 3),
    "eigh": lambda x: np.sum(np.linalg.eigvalsh(x @ x.T) ** 2 * np.array([1.0, 2.0])),
    "norm": lambda x: np.linalg.norm(x) ** 3 + np.linalg.norm(x, axis=1).prod() + np.linalg.norm(x, 1),
    "concatenate": lambda x: np.prod(np.concatenate([x[0], x[1] ** 2])) + np.stack([x, x**2]).prod(),
    "take": lambda x: np.take(x, [0, 2, 2]).prod() * x[[0, 1, 1], [1, 1, 1]].prod(),
    "fft": lambda x: np.sum(np.abs(np.fft.fft(x)) ** 4),
    "diff": lambda x: np.sum(np.diff(x, axis=1) ** 3) + np.cumsum(x).prod(),
    "median": lambda x: np.median(x) ** 3 + np.quantile(x, 0.3) ** 2,
    "interp": lambda x: np.interp(0.35, np.array([0.1, 0.5]), x[0, :2] ** 2) ** 2,
    "clip": lambda x: np.sum(np.clip(x, -0.5, 0.5) ** 3),
    "reduce": lambda x: np.logaddexp.reduce(x.ravel()) * np.maximum.accumulate(x, axis=1).sum(),
    "broadcast": lambda x: np.sum(np.broadcast_to(x[0], (4, 3)) ** 3) * np.tile(x, 2).sum() * np.repeat(x, 2).sum(),
    "convolve": lambda x: np.sum(np.convolve(x[0], x[1]) ** 2),
    "pinv": lambda x: np.sum(np.linalg.pinv(x) ** 2),
    "tensordot": lambda x: np.tensordot(x, x.T, 1).sum() ** 2 + np.outer(x, x).sum() + np.dot(x[0], x[1]) ** 2,
}


@pytest.mark.parametrize("name", SECOND)
def test_the_gradient_of_a_gradient(name):
    f = SECOND[name]
    x = np.array([[0.4, -0.7, 1.3], [0.9, 0.2, -0.6]])
    direction = np.array([[0.3, 1.1, -0.4], [0.8, -0.9, 0.5]])

    def slope(x):
        return np.sum(grad(f)(x) * direction)

    def plain_slope(x):
        return (f(x + 1e-5 * direction) - f(x - 1e-5 * direction)) / 2e-5

    np.testing.assert_allclose(slope(x), plain_slope(x), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(grad(slope)(x), differences(slope, x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: sum(float(e) for e in np.nditer(x, ["buffered"])),
        lambda x: sum(float(e) for e in np.nditer([x[0], x[1]])),
        lambda x: np.frombuffer(x.tobytes())[0],
        lambda x: np.fromstring(" ".join(map(str, x)), sep=" ").sum(),
        lambda x: np.random.default_rng(0).gamma(x).sum(),
        lambda x: np.random.default_rng(0).standard_t(np.abs(x) + 1).sum(),
        lambda x: np.random.default_rng(0).multivariate_normal(np.zeros(2), np.diag(np.abs(x[:2]))).sum(),
        lambda x: np.linalg.qr(np.outer(x, x) + np.eye(3), "raw")[0].sum(),
        lambda x: np.linalg.svd(np.outer(x, x[:2]) + np.eye(3)[:, :2])[0].sum(),
        lambda x: x.view(np.int64).sum() * 1.0,
        lambda x: x.byteswap().sum(),
        lambda x: x.resize(2) or x.sum(),
        lambda x: np.random.default_rng(0).choice(3, p=x / x.sum()) * x[0],
        lambda x: sum(a * b for a, b in np.broadcast(x, x[::-1])),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_has_no_rule_is_refused(f):
    with pytest.raises((MissingRuleError, plaingrad.errors.PlaingradError)):
        grad(f)(np.array([0.3, 0.7, 1.1]))


@pytest.mark.parametrize(
    "write",
    [
        lambda x, out: np.round(x, 0, out),
        lambda x, out: np.around(x, out=out),
        lambda x, out: x.round(0, out),
        lambda x, out: np.fix(x, out),
        lambda x, out: np.isneginf(x, out=out),
        lambda x, out: np.isposinf(x, out),
        lambda x, out: np.any([x, x], 0, out),
        lambda x, out: np.all([x, x], axis=0, out=out),
        lambda x, out: np.stack([x, x]).any(0, out=out),
        lambda x, out: np.stack([x, x]).all(axis=0, out=out),
    ],
)
@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")
def test_results_without_tangent_replace_what_their_output_array_held(write):
    def f(x):
        out = x * 3
        assert write(x, out) is out
        return (out * x).sum()

    x = rng.standard_normal(4)
    np.testing.assert_array_equal(grad(f)(x), write(x, np.zeros(4)))


@pytest.mark.parametrize(
    "write",
    [
        lambda out: np.take(np.ones(4), [0, 1, 2, 3], None, out),
        lambda out: np.ones(4).compress([1, 1, 1, 1], None, out),
        lambda out: np.ones((2, 2, 4)).trace(0, 0, 1, None, out),
        lambda out: np.dot(np.eye(4), np.ones(4), out),
        lambda out: np.outer([1, 1], [1, 1], out.reshape(2, 2)),
    ],
)
def test_constants_written_to_an_output_array_given_by_position_replace_what_it_held(write):
    def f(x):
        out = x * 3
        write(out)
        return (out * x).sum()

    expected = np.empty(4)
    write(expected)
    np.testing.assert_array_equal(grad(f)(np.ones(4)), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.int8, np.int32])
def test_sort_complex_has_the_type_that_numpy_gives(dtype):
    a = np.array([[3, 1, 2], [1, 3, 0]], dtype)
    (_, z), _ = value_and_grad(lambda x: (x, np.sort_complex(a + x.astype(dtype))), has_aux=True)(np.zeros(()))
    assert z.dtype == np.sort_complex(a).dtype
    np.testing.assert_array_equal(z, np.sort_complex(a))


def test_the_product_of_a_number_along_its_only_axis():
    assert grad(lambda x: np.cumprod(x, axis=0)[0])(0.7) == 1


def test_a_reduction_to_a_number_keeps_no_axes_of_a_number():
    z, x_bar = value_and_grad(lambda x: np.subtract.reduce(x, keepdims=True))(np.float64(0.7))
    assert type(z) is np.float64 and (z, x_bar) == (0.7, 1)


def test_the_method_behind_power_in_place_takes_a_modulus():
    def f(x):
        y = x * 2
        return y.__ipow__(3, None).sum()

    x = rng.standard_normal(4)
    np.testing.assert_allclose(grad(f)(x), 24 * x**2)


def central(f, x, h=1e-5):
    """Fourth-order central differences of a number by an array."""
    flat = [
        (8 * (f(x + h * e) - f(x - h * e)) - f(x + 2 * h * e) + f(x - 2 * h * e)) / (12 * h)
        for e in np.eye(x.size).reshape(-1, *x.shape)
    ]
    return np.reshape(flat, x.shape)


PHASED = {
    "eigh": lambda a: np.sum(np.real(np.linalg.eigh(a + np.conj(np.swapaxes(a, -1, -2)))[1] * (1.0 - 0.4j) * weight)),
    "eigh of the other triangle": lambda a: np.sum(np.real(np.linalg.eigh(a, "U")[1] * weight)),
    "svd": lambda a: np.sum(np.real(np.linalg.svd(a)[0] * weight) + np.imag(np.linalg.svd(a)[2] * weight)),
    "svd, tall": lambda a: np.sum(np.real(np.linalg.svd(a[..., :2], False)[0] * weight[:, :2])),
    "svd, wide": lambda a: np.sum(np.real(np.linalg.svd(a[..., :2, :], False)[2] * weight[:2])),
}


@pytest.mark.parametrize("name", PHASED)
@pytest.mark.parametrize("lead", [(), (2,)], ids=["one", "batch"])
def test_phases_of_complex_vectors_are_those_that_lapack_gives_them(name, lead):
    f = PHASED[name]
    real, imaginary = np.random.default_rng(7).standard_normal((2, *lead, 3, 3))

    def g(x):
        return f(x + 1j * imaginary)

    slope = central(g, real)
    np.testing.assert_allclose(plaingrad.grad(g)(real), slope, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(plaingrad.grad(lambda y: f(real + 1j * y))(imaginary), central(lambda y: f(real + 1j * y), imaginary), rtol=1e-6, atol=1e-7)
    along = np.cos(np.arange(real.size)).reshape(real.shape)
    assert plaingrad.jvp(g, (real,), (along,))[1] == pytest.approx(np.sum(slope * along), rel=1e-6)


def test_vectors_of_equal_eigenvalues_are_not_determined():
    """The derivative of exp(A)[0, 1] at the identity is e, which no rule of the vectors can tell from 0: nan."""

    def exponential(a):
        w, v = np.linalg.eigh(a)
        return ((v * np.exp(w)) @ v.T)[0, 1]

    assert np.isnan(plaingrad.grad(exponential)(np.eye(3))).any()
    values = plaingrad.grad(lambda a: np.sum(np.linalg.eigh(a)[0] ** 2))(2.0 * np.eye(3))
    assert np.array_equal(values, 4.0 * np.eye(3))
    a = np.diag([1.0, 2.0, 2.0])
    first = plaingrad.grad(lambda a: np.linalg.eigh(a)[1][1, 0] / np.linalg.eigh(a)[1][0, 0])(a)  # its vector is alone
    np.testing.assert_allclose(first + first.T, -np.eye(3)[[1, 0, 2]] * [[1], [1], [0]], atol=1e-12)
