"""Filters of images, and images that are moved."""

import numpy as np
from scipy import ndimage

from benchmarks.ordinary.program import program

RANDOM = np.random.default_rng(8)
IMAGE = RANDOM.normal(size=(256, 256))
WINDOW = RANDOM.normal(size=(5, 5))
PLACES = RANDOM.uniform(5.0, 250.0, (2, 256, 256))
TURN = np.array([[0.95, 0.2], [-0.2, 0.95]])


@program("gaussian_filter, 256 x 256", IMAGE, goal=4)
def gaussian(x):
    return np.sum(ndimage.gaussian_filter(x, 3.0) ** 2)


@program("gaussian_filter in sigma", np.array([3.0]), goal=4)
def gaussian_sigma(s):
    return np.sum(ndimage.gaussian_filter(IMAGE, s[0]) ** 2)


@program("convolve, 256 x 256 with 5 x 5", IMAGE, goal=4)
def convolve(x):
    return np.sum(ndimage.convolve(x, WINDOW) ** 2)


@program("median_filter, 256 x 256", IMAGE, goal=4)
def median(x):
    return np.sum(ndimage.median_filter(x, 3) ** 2)


@program("sobel and laplace, 256 x 256", IMAGE, goal=4)
def sobel(x):
    return np.sum(ndimage.sobel(x, 0) ** 2 + ndimage.sobel(x, 1) ** 2 + ndimage.laplace(x) ** 2)


@program("map_coordinates, linear, in the image", IMAGE, goal=4)
def linear(x):
    return np.sum(ndimage.map_coordinates(x, PLACES, order=1) ** 2)


@program("map_coordinates, linear, in the places", PLACES, goal=4)
def linear_places(places):
    return np.sum(ndimage.map_coordinates(IMAGE, places, order=1) ** 2)


@program("map_coordinates, cubic, in the image", IMAGE, goal=4)
def cubic(x):
    return np.sum(ndimage.map_coordinates(x, PLACES, order=3) ** 2)


@program("affine_transform in the matrix", TURN, goal=6)
def affine(m):
    return np.sum(ndimage.affine_transform(IMAGE, m, offset=20.123, order=3, mode="nearest") ** 2)


@program("rotate, 256 x 256", IMAGE, goal=4)
def rotate(x):
    return np.sum(ndimage.rotate(x, 20.0, reshape=False, order=3) ** 2)


@program("zoom by 1.5, 256 x 256", IMAGE, goal=4)
def zoom(x):
    return np.sum(ndimage.zoom(x, 1.5, order=3) ** 2)
