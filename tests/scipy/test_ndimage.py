"""Filters of images, in the image and in their parameters."""

import numpy as np
import pytest
from tests.scipy.agreement import agrees

import plaingrad

ndimage = pytest.importorskip("scipy.ndimage")
pytestmark = pytest.mark.filterwarnings("ignore")

IMAGE = np.cos(np.outer(np.arange(6.0), np.arange(1.0, 8.0)) * 0.7) + 0.1 * np.arange(7.0)
MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "grid-constant", "grid-wrap", "grid-mirror")
LABELS = np.arange(42).reshape(6, 7) % 3


@pytest.mark.parametrize("mode", MODES)
def test_filters_continue_the_image_as_the_mode_says(mode):
    agrees(lambda x: ndimage.gaussian_filter(x, 1.2, mode=mode, cval=0.5), IMAGE, nested=mode == "mirror")
    agrees(lambda x: ndimage.uniform_filter(x, 3, mode=mode), IMAGE, nested=False)
    agrees(lambda x: ndimage.convolve(x, x[:3, :2], mode=mode, cval=0.4), IMAGE, nested=mode == "wrap")
    agrees(lambda x: ndimage.correlate1d(x, x[0, :3], mode=mode, cval=0.4, origin=1), IMAGE, nested=False)
    agrees(lambda x: ndimage.median_filter(x, 3, mode=mode), IMAGE, nested=False)
    agrees(lambda x: ndimage.maximum_filter(x, (2, 3), mode=mode, origin=(0, 1)), IMAGE, nested=False)


OTHERS = {
    "percentile": lambda x: ndimage.percentile_filter(x, 30, 3),
    "footprint": lambda x: ndimage.minimum_filter(x, footprint=np.array([[0, 1, 0], [1, 1, 1]])),
    "one axis": lambda x: ndimage.median_filter(x[0], 3) + ndimage.maximum_filter1d(x[1], 3),
    "opening": lambda x: ndimage.grey_opening(x, 3),
    "gradient": lambda x: ndimage.morphological_gradient(x, 3),
    "sobel": lambda x: ndimage.sobel(x) + ndimage.laplace(x),
    "order": lambda x: ndimage.gaussian_filter(x, 1.0, order=(1, 0)),
    "magnitude": lambda x: ndimage.gaussian_gradient_magnitude(x, 1.0),
    "width": lambda x: ndimage.gaussian_filter1d(IMAGE, 1.1 + 0.1 * x[0, 1]),
    "complex": lambda x: ndimage.gaussian_filter(x * (1 + 0.5j), 1.0),
    "labels": lambda x: ndimage.sum_labels(x, LABELS, [1, 2]) * ndimage.mean(x, LABELS, [1, 2]),
    "maximum of labels": lambda x: ndimage.maximum(x, LABELS, [1, 2]),
    "centre": lambda x: np.ravel(ndimage.center_of_mass(x * x, LABELS, [1, 2])),
    "regions": lambda x: ndimage.label(x > 0.2)[0] * x,
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_filters(name):
    agrees(OTHERS[name], IMAGE, tolerance=1e-6)


@pytest.mark.parametrize("mode", ["mirror", "reflect", "grid-wrap", "constant", "nearest", "wrap"])
@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_spline_coefficients(order, mode):
    agrees(lambda x: ndimage.spline_filter(x, order, mode=mode), IMAGE, nested=False)


def test_a_filter_of_an_image_in_single_precision():
    gradient = plaingrad.grad(lambda x: (ndimage.gaussian_filter(x, 1.0) ** 2).sum())(IMAGE.astype(np.float32))
    exact = plaingrad.grad(lambda x: (ndimage.gaussian_filter(x, 1.0) ** 2).sum())(IMAGE)
    assert gradient.dtype == np.float32 and np.allclose(gradient, exact, atol=1e-4)


COORDINATES = np.array([[1.3, 2.6, -0.8, 5.4, 9.7], [2.2, 3.1, 0.7, 6.3, -4.6]])


@pytest.mark.parametrize("mode", MODES)
def test_interpolation_in_image_and_coordinates(mode):
    for order in (0, 1, 2, 3, 5):
        agrees(
            lambda x, n=order: ndimage.map_coordinates(x, COORDINATES, order=n, mode=mode, cval=0.3),
            IMAGE,
            nested=order == 3,
        )
    agrees(lambda c: ndimage.map_coordinates(IMAGE, c, mode=mode, cval=0.3), COORDINATES, tolerance=1e-6)


MOVED = {
    "affine": lambda x: ndimage.affine_transform(x, np.eye(2) + 0.1 * x[:2, :2], x[2, :2]),
    "scaled": lambda x: ndimage.affine_transform(IMAGE, 1 + 0.1 * x[0, :2] ** 2, x[2, :2]),
    "shift": lambda x: ndimage.shift(x, 0.3 + x[0, 1:3] * 0.1),
    "zoom": lambda x: np.append(ndimage.zoom(x, 1.7), ndimage.zoom(x, 1.5, order=1, mode="nearest")),
    "rotate": lambda x: ndimage.rotate(x, 17.0 + x[1, 1], reshape=False),
    "complex": lambda x: ndimage.shift(x * (1 + 0.5j), 0.3),
}


@pytest.mark.parametrize("name", MOVED)
def test_images_that_are_moved(name):
    agrees(MOVED[name], IMAGE, tolerance=1e-6)
