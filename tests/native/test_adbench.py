"""The examples in examples/adbench: gradients of ADBench's problems against the complex step of other programs."""

import math

import numpy as np
import pytest

pytest.importorskip("numba")

import plaingrad
from examples.adbench import gmm, lstm

DATA = gmm.DATA.parent  # examples.adbench.ba compiles when it is imported: where it is needed
H = 1e-200  # an imaginary step: its square vanishes, nothing is subtracted


def by_complex_step(f, args, positions):
    """The gradient of f, by one step in every number of the arguments at `positions`."""
    found = []
    for position in positions:
        x = args[position]
        slopes = np.empty(x.shape)
        for index in np.ndindex(x.shape):
            moved = x.astype(complex)
            moved[index] += 1j * H
            slopes[index] = f(*args[:position], moved, *args[position + 1 :]).imag / H
        found.append(slopes)
    return found


def along_by_complex_step(f, args, directions):
    """The derivative of f in the first len(directions) arguments, along the directions."""
    moved = [x + 1j * H * v for x, v in zip(args, directions)]
    return f(*moved, *args[len(directions) :]).imag / H


def assert_close(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(b).max(initial=0.0))


# -- a mixture of normal distributions --------------------------------------------------------------------------------


def log_likelihood_by_matrices(alphas, means, log_diagonals, lowers, points, gamma, m):
    """The formula of ADBench with matrices, for complex numbers too."""
    (n, d), k = points.shape, alphas.size
    columns, rows = np.triu_indices(d, 1)  # column by column
    terms = np.empty((n, k), complex)
    for c in range(k):
        factor = np.diag(np.exp(log_diagonals[c])).astype(complex)
        factor[rows, columns] = lowers[c]
        terms[:, c] = (
            alphas[c] + log_diagonals[c].sum() - 0.5 * (((points - means[c]) @ factor.T) ** 2).sum(axis=1)
        )
    highest = terms.real.max(axis=1)
    sums = highest + np.log(np.exp(terms - highest[:, None]).sum(axis=1))
    w = d + m + 1
    log_gamma = d * (d - 1) / 4 * math.log(math.pi) + sum(math.lgamma(0.5 * (w - j)) for j in range(d))
    prior = (
        k * (w * d * math.log(gamma / math.sqrt(2.0)) - log_gamma)
        - 0.5 * gamma**2 * ((np.exp(log_diagonals) ** 2).sum() + (lowers**2).sum())
        + m * log_diagonals.sum()
    )
    normal = n * np.log(np.exp(alphas).sum()) + n * d / 2 * math.log(2.0 * math.pi)
    return sums.sum() - normal + prior


def small_mixture():
    random = np.random.default_rng(1)
    d, k, n = 3, 2, 7
    shapes = (k,), (k, d), (k, d), (k, d * (d - 1) // 2), (n, d)
    return gmm.Mixture(*[random.normal(size=shape) for shape in shapes], 1.3, 2)


def test_the_gradient_of_a_mixture_is_that_of_the_complex_step_and_of_the_plain_tier():
    mixture = small_mixture()
    value, found = gmm.gradient(*mixture)
    assert value == pytest.approx(log_likelihood_by_matrices(*mixture).real, rel=1e-13)
    assert_close(found, by_complex_step(log_likelihood_by_matrices, mixture, gmm.PARAMETERS))
    plain = plaingrad.value_and_grad(gmm.log_likelihood.py_func, gmm.PARAMETERS, tier="plain")(*mixture)
    assert value == pytest.approx(plain[0], rel=1e-13)
    assert_close(found, plain[1])


@pytest.mark.parametrize("name", ["gmm_d2_K5", "gmm_d10_K25"])
def test_the_mixtures_of_adbench(name, capsys):
    path = DATA / f"{name}.txt"
    value, found = gmm.main([str(path)])
    mixture = gmm.read(path)
    assert value == pytest.approx(log_likelihood_by_matrices(*mixture).real, rel=1e-12)
    random = np.random.default_rng(0)
    directions = [random.normal(size=part.shape) for part in found]
    along = sum(np.sum(g * v) for g, v in zip(found, directions))
    wanted = along_by_complex_step(log_likelihood_by_matrices, mixture, directions)
    assert along == pytest.approx(wanted, rel=1e-10)
    assert "log-likelihood" in capsys.readouterr().out


# -- bundle adjustment --------------------------------------------------------------------------------------------------


def distances_by_arrays(cameras, points, weights, features):
    """The residuals of all observations at once, the points turned by the matrix exponential of their axis."""
    i = np.arange(weights.size)
    c, x = cameras[i % len(cameras)], points[i % len(points)]
    axis, x = c[:, :3], x - c[:, 3:6]
    square = (axis**2).sum(axis=1)[:, None]
    angle = np.sqrt(square)
    turned = np.cross(axis, x)
    y = x + np.sin(angle) / angle * turned + (1 - np.cos(angle)) / square * np.cross(axis, turned)
    uv = y[:, :2] / y[:, 2:]
    s = (uv**2).sum(axis=1)[:, None]
    seen = uv * (1 + c[:, 9:10] * s + c[:, 10:11] * s**2) * c[:, 6:7] + c[:, 7:9]
    return np.concatenate([(weights[:, None] * (seen - features)).ravel(), 1 - weights**2])


def small_scene():
    from examples.adbench import ba

    random = np.random.default_rng(2)
    n, m, p = 2, 3, 5
    points = random.normal(size=(m, 3)) + [0.0, 0.0, 9.0]
    return ba.Scene(
        0.3 * random.normal(size=(n, 11)), points, random.normal(size=p), random.normal(size=(p, 2))
    )


def dense(matrix):
    found = np.zeros(matrix.shape)
    for row, (start, stop) in enumerate(zip(matrix.indptr, matrix.indptr[1:])):
        found[row, matrix.indices[start:stop]] = matrix.data[start:stop]
    return found


def test_every_entry_of_the_jacobian_of_a_scene_is_that_of_the_complex_step():
    from examples.adbench import ba

    scene = small_scene()
    values, found = ba.jacobian(scene)
    np.testing.assert_allclose(values, distances_by_arrays(*scene), rtol=1e-12, atol=1e-13)
    columns = []
    for position in range(3):
        x = scene[position]
        for index in np.ndindex(x.shape):
            moved = x.astype(complex)
            moved[index] += 1j * H
            columns.append(distances_by_arrays(*scene[:position], moved, *scene[position + 1 :]).imag / H)
    assert_close([dense(found)], [np.stack(columns, axis=1)])


def test_the_jacobian_without_a_rotation_is_that_of_small_rotations():
    from examples.adbench import ba

    scene = small_scene()
    scene.cameras[:, :3] = 0.0
    at_zero = ba.jacobian(scene)[1]
    scene.cameras[:, :3] = 1e-9
    np.testing.assert_allclose(at_zero.data, ba.jacobian(scene)[1].data, rtol=1e-7, atol=1e-7)


def test_the_scene_of_adbench(capsys):
    from examples.adbench import ba

    values, found = ba.main([])
    scene = ba.read(ba.DATA)
    p = scene.weights.size
    assert found.shape == (3 * p, 11 * 49 + 3 * 7776 + p)
    assert found.data.size == found.indices.size == found.indptr[-1] == 31 * p
    np.testing.assert_allclose(values, distances_by_arrays(*scene), rtol=1e-9, atol=1e-12)
    random = np.random.default_rng(0)
    directions = [random.normal(size=part.shape) for part in scene[:3]]
    everything = np.concatenate([v.ravel() for v in directions])
    along = np.add.reduceat(found.data * everything[found.indices], found.indptr[:-1])
    wanted = along_by_complex_step(distances_by_arrays, scene, directions)
    assert_close([along], [wanted])
    assert "95529 x 55710, 987133 entries" in capsys.readouterr().out


# -- a recurrent network ------------------------------------------------------------------------------------------------


def loss_by_arrays(main, extra, state, text):
    """The formula of ADBench with arrays, for complex numbers too."""
    length, b = text.shape
    hidden, cell = state[0::2].astype(complex), state[1::2].astype(complex)
    total = 0.0
    for t in range(length - 1):
        z = text[t] * extra[0]
        for k in range(len(hidden)):
            w, bias = main[2 * k].reshape(4, b), main[2 * k + 1].reshape(4, b)
            forget, give = (1 / (1 + np.exp(-(z * w[g] + bias[g]))) for g in (0, 2))
            take = 1 / (1 + np.exp(-(hidden[k] * w[1] + bias[1])))
            cell[k] = cell[k] * forget + take * np.tanh(hidden[k] * w[3] + bias[3])
            z = hidden[k] = give * np.tanh(cell[k])
        y = z * extra[1] + extra[2]
        total = total + np.sum(text[t + 1] * (y - np.log(np.exp(y).sum() + 2)))
    return -total / ((length - 1) * b)


def small_network():
    random = np.random.default_rng(3)
    layers, length, b = 2, 6, 3
    shapes = (2 * layers, 4 * b), (3, b), (2 * layers, b)
    return lstm.Network(
        *[random.normal(size=shape) for shape in shapes], random.integers(0, 2, (length, b)) + 0.0
    )


def test_the_gradient_of_a_network_is_that_of_the_complex_step_and_of_the_plain_tier():
    network = small_network()
    value, found = lstm.gradient(*network)
    assert value == pytest.approx(loss_by_arrays(*network).real, rel=1e-13)
    assert_close(found, by_complex_step(loss_by_arrays, network, lstm.PARAMETERS))
    plain = plaingrad.value_and_grad(lstm.loss.py_func, lstm.PARAMETERS, tier="plain")(*network)
    assert value == pytest.approx(plain[0], rel=1e-13)
    assert_close(found, plain[1])


@pytest.mark.parametrize("name", ["lstm_l2_c1024", "lstm_l4_c1024"])
def test_the_networks_of_adbench(name, capsys):
    path = DATA / f"{name}.txt"
    value, found = lstm.main([str(path)])
    network = lstm.read(path)
    random = np.random.default_rng(0)
    directions = [random.normal(size=part.shape) for part in found]
    along = sum(np.sum(g * v) for g, v in zip(found, directions))
    assert value == pytest.approx(loss_by_arrays(*network).real, rel=1e-12)
    assert along == pytest.approx(along_by_complex_step(loss_by_arrays, network, directions), rel=1e-10)
    assert "loss" in capsys.readouterr().out
