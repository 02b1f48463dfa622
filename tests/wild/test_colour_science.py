"""colour-science: NumPy code over several hundred lines, with registries, decorators, context managers and warnings."""

import warnings

import numpy as np
import pytest

import plaingrad

with warnings.catch_warnings():  # it mentions the optional packages that it misses
    warnings.simplefilter("ignore")
    colour = pytest.importorskip("colour")

RED = np.array([1.0, 0.0, 0.0])
GREEN = np.array([0.0, 1.0, 0.0])


def difference(green, red=RED, method="CIE 2000"):
    lab_red = colour.XYZ_to_Lab(colour.sRGB_to_XYZ(red))
    lab_green = colour.XYZ_to_Lab(colour.sRGB_to_XYZ(green))
    return colour.delta_E(lab_red, lab_green, method=method)


def test_b10_the_papers_example_of_a_colour_difference():
    value, gradient = plaingrad.value_and_grad(difference)(GREEN)
    assert value == pytest.approx(86.614312, abs=1e-6)
    assert gradient == pytest.approx([-1.7697120, 28.8881552, -0.0449283], abs=1e-6)


@pytest.mark.parametrize("method", ["CIE 1976", "CIE 1994", "CIE 2000", "CMC", "HyAB"])
def test_every_formula_of_a_colour_difference(agrees, method):
    agrees(lambda one, other: difference(one, other, method), np.array([0.2, 0.7, 0.3]), np.array([0.6, 0.4, 0.5]))


def test_a_colour_given_as_a_list(agrees):
    agrees(lambda green: difference(green), [0.1, 0.9, 0.2])


def test_an_image_of_colours_at_once(agrees):
    image = np.random.default_rng(0).uniform(0.1, 0.9, (2, 3, 3))

    def mean_chroma(image):
        lab = colour.XYZ_to_Lab(colour.sRGB_to_XYZ(image))
        return np.mean(np.hypot(lab[..., 1], lab[..., 2]))

    agrees(mean_chroma, image)


def test_there_and_back_is_the_identity():
    rgb = np.array([0.3, 0.5, 0.7])
    weights = np.array([1.0, -2.0, 3.0])

    def there_and_back(rgb):
        return np.dot(weights, colour.XYZ_to_sRGB(colour.Lab_to_XYZ(colour.XYZ_to_Lab(colour.sRGB_to_XYZ(rgb)))))

    assert plaingrad.grad(there_and_back)(rgb) == pytest.approx(weights, rel=5e-4)  # its matrices have 4 to 6 digits


def test_cylindrical_lab_and_a_white_point(agrees):
    def lightness_and_hue(xyz, white):
        lch = colour.Lab_to_LCHab(colour.XYZ_to_Lab(xyz, white))
        return lch[0] + 0.01 * lch[2]

    agrees(lightness_and_hue, np.array([0.2, 0.12, 0.05]), np.array([0.31, 0.33]))
