"""Filters in frequency space, filters that call functions, grey morphology with a structure: compared with differences."""

import numpy as np
import pytest

import plaingrad

from tests.scipy.agreement import agrees

ndimage = pytest.importorskip("scipy.ndimage")
signal = pytest.importorskip("scipy.signal")

IMAGE = np.cos(np.outer(np.arange(5.0), np.arange(1.0, 7.0)) * 0.7) + 0.1 * np.arange(6.0)
STRUCTURE = np.array(
    [[0.31, 0.12, 0.25], [0.0, 0.47, 0.08]]
)  # no two sums with the image below are near to each other
NAMES = ["fourier_gaussian", "fourier_uniform", "fourier_ellipsoid", "fourier_shift"]
MORPHOLOGY = [
    "grey_dilation", "grey_erosion", "grey_opening", "grey_closing", "morphological_gradient", "morphological_laplace",
    "white_tophat", "black_tophat",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_filters_in_frequency_space_are_right_in_spectrum_and_widths(name):
    f = getattr(ndimage, name)
    agrees(lambda x: f(np.fft.fft2(x), [2.3, 1.7]), IMAGE, 1e-6, False)
    agrees(lambda s: f(np.fft.fft2(IMAGE), s), [2.3, 1.7], 1e-6, name == "fourier_ellipsoid")
    agrees(lambda s: f(np.fft.rfft2(IMAGE), s, n=6, axis=1), [2.3, 1.7], 1e-6, False)
    agrees(lambda s: f(IMAGE[0], s[0]), [2.3], 1e-6, False)


def test_ellipsoids_in_three_dimensions():
    x = np.stack([IMAGE, IMAGE * IMAGE, 1 - IMAGE])
    agrees(lambda s: ndimage.fourier_ellipsoid(x, s), [2.3, 1.7, 2.0], 1e-6, False)


@pytest.mark.parametrize("mode", ["reflect", "constant", "nearest", "mirror", "wrap"])
def test_functions_that_are_called_for_every_point(mode):
    agrees(
        lambda x: ndimage.generic_filter(x, lambda w: (w * w).sum() + w[0], 3, mode=mode),
        IMAGE,
        1e-7,
        mode == "wrap",
    )

    def line(inside, outside):
        outside[:] = inside[:-2] * inside[1:-1] + inside[2:]

    agrees(lambda x: ndimage.generic_filter1d(x, line, 3, axis=0, mode=mode), IMAGE, 1e-7, False)


def test_what_a_function_captures_and_is_given_has_a_derivative():
    agrees(
        lambda p: ndimage.generic_filter(
            IMAGE, lambda w, q: p[0] * w[0] + q * w[1], 2, extra_arguments=(p[1],)
        ),
        [1.5, 0.4],
    )


def test_a_footprint_chooses_what_the_function_gets():
    foot = np.array([[0, 1, 0], [1, 0, 1]], bool)
    agrees(lambda x: ndimage.generic_filter(x, np.prod, footprint=foot, origin=(0, 1)), IMAGE, 1e-7, False)


def test_geometric_transform_by_a_function():
    def at(place, p):
        return p[0] * place[0] + 0.3, p[1] * place[1] + 0.1 * place[0]

    agrees(lambda p: ndimage.geometric_transform(IMAGE, at, extra_arguments=(p,)), [0.7, 0.8], 1e-6)
    agrees(lambda x: ndimage.geometric_transform(x, at, extra_keywords={"p": (0.7, 0.8)}), IMAGE, 1e-6, False)


@pytest.mark.parametrize("name", MORPHOLOGY)
def test_grey_morphology_with_a_structure(name):
    f = getattr(ndimage, name)
    image = 0.1 * np.random.default_rng(0).permutation(30).reshape(5, 6)
    agrees(lambda x: f(x, structure=STRUCTURE), image, 1e-6, False)
    agrees(lambda s: f(image, structure=s, mode="constant", cval=0.235), STRUCTURE, 1e-6, False)


def test_separable_filters():
    agrees(lambda x: signal.sepfir2d(x, [1.0, 2.0, 4.0], [2.0, 1.0, 0.5]), IMAGE)
    agrees(lambda h: signal.sepfir2d(IMAGE, h, h[::-1] ** 2), [1.0, 2.0, 4.0])


def test_values_are_those_of_scipy():
    def checked(x):
        for f in (
            lambda x: ndimage.grey_erosion(x, structure=STRUCTURE),
            lambda x: ndimage.generic_filter(x, np.max, 3),
            lambda x: ndimage.fourier_gaussian(x, 1.3),
        ):
            np.testing.assert_allclose(f(x), f(IMAGE), rtol=1e-14)
        return x.sum()

    plaingrad.grad(checked)(IMAGE)


def test_euclidean_distances_in_the_sampling():
    """Background has the distance 0 whatever the sampling is: the slope there is 0, and was nan."""
    inside = IMAGE > 0.2
    assert not inside.all()
    agrees(lambda s: ndimage.distance_transform_edt(inside, sampling=s), [1.1, 0.8], 1e-6)
    distances, places = ndimage.distance_transform_edt(inside, sampling=[1.1, 0.8], return_indices=True)

    def both(s):
        found = ndimage.distance_transform_edt(inside, sampling=s, return_indices=True)
        assert np.array_equal(found[1], places)
        return found[0].sum()

    value, slope = plaingrad.value_and_grad(both)(np.array([1.1, 0.8]))
    assert value == distances.sum()
    assert slope @ [1.1, 0.8] == pytest.approx(value)  # distances are homogeneous
