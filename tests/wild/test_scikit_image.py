"""scikit-image: colours, metrics, transforms and exposure in NumPy; filters by SciPy's C code; its own compiled code is refused by name."""

import warnings

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("skimage")
    from skimage import color, exposure, filters, measure, metrics, transform

RNG = np.random.default_rng(0)
IMAGE = RNG.uniform(0.1, 0.9, (4, 4))
COLOURS = RNG.uniform(0.1, 0.9, (2, 1, 3))


@pytest.mark.parametrize("name", ["rgb2lab", "rgb2xyz", "rgb2hsv", "rgb2gray", "rgb2luv", "rgb2yuv", "rgb2ycbcr"])
def test_conversions_of_colours(agrees, name):
    agrees(lambda v: getattr(color, name)(v).sum(), COLOURS, rtol=1e-5)


def test_differences_of_colours(agrees):
    other = color.rgb2lab(COLOURS * 0.9)
    agrees(lambda v: color.deltaE_cie76(color.rgb2lab(v), other).sum(), COLOURS)
    agrees(lambda v: color.deltaE_ciede2000(color.rgb2lab(v), other).sum(), COLOURS, rtol=1e-5)


def test_metrics_of_images(agrees):
    agrees(lambda v: metrics.peak_signal_noise_ratio(IMAGE, v, data_range=1.0), IMAGE * 0.9)
    agrees(lambda v: metrics.mean_squared_error(IMAGE, v), IMAGE * 0.9)
    agrees(lambda v: metrics.normalized_root_mse(IMAGE, v), IMAGE * 0.9)


def test_geometric_transforms(agrees):
    points = np.array([[1.0, 2.0]])
    agrees(lambda a: transform.AffineTransform(scale=(a, 1.0), rotation=0.1)(points)[0, 0], 1.1)
    agrees(lambda a: transform.EuclideanTransform(rotation=a).params.sum(), 0.3)


def test_exposure_and_measures(agrees):
    agrees(lambda v: exposure.adjust_gamma(v, 0.7).sum(), IMAGE)
    agrees(lambda g: exposure.adjust_gamma(IMAGE, g).sum(), 0.7)
    agrees(lambda v: exposure.adjust_sigmoid(v).sum(), IMAGE)
    agrees(lambda v: measure.block_reduce(v, (2, 2), np.mean)[0, 1], IMAGE)
    agrees(lambda v: measure.moments(v)[1, 1], IMAGE)
    agrees(lambda v: measure.centroid(v)[0], IMAGE)


def test_filters_are_refused_by_what_was_called(refuses):
    refuses(lambda v: transform.rotate(v, 20.0).sum(), IMAGE, called="skimage.transform.rotate")


def test_filters_of_scipys_c_code(agrees):
    agrees(lambda v: (filters.sobel(v) ** 2).sum(), IMAGE, rtol=1e-5)
    agrees(lambda v: filters.gaussian(v, 1.0).std(), IMAGE, rtol=1e-5)
    agrees(lambda v: (transform.resize(v, (2, 2)) ** 2).sum(), IMAGE, rtol=1e-5)
