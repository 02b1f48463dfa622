"""matplotlib: transformations of points, and conversions of colours."""

import numpy as np
import pytest

import plaingrad

transforms = pytest.importorskip("matplotlib.transforms")
colors = pytest.importorskip("matplotlib.colors")


def test_points_under_an_affine_map(agrees):
    map_of = lambda x: transforms.Affine2D().rotate(x[0]).scale(x[1], 2.0).translate(x[2], 1.0)
    agrees(lambda x: (map_of(x).transform([[1.0, 2.0], [0.5, -1.0]]) ** 2).sum(), np.array([0.3, 1.5, 0.7]))
    agrees(lambda p: (map_of([0.3, 1.5, 0.7]).transform(p) ** 2).sum(), np.array([[1.0, 2.0], [0.5, -1.0]]))
    agrees(lambda p: map_of([0.3, 1.5, 0.7]).transform(p)[0], np.array([1.0, 2.0]))
    assert plaingrad.grad(lambda p: map_of([0.3, 1.5, 0.7]).transform(p).sum())(np.ones((0, 2))).shape == (0, 2)


def test_colours(agrees):
    agrees(lambda c: (colors.rgb_to_hsv(c) ** 2).sum(), np.array([0.5, 0.2, 0.3]))
    agrees(lambda c: (colors.hsv_to_rgb(c) ** 2).sum(), np.array([0.4, 0.6, 0.5]))
