"""An image restored with slices and strides in NumPy: a bilateral filter, edges, blocks, a score."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

DRAW = np.random.default_rng(6)
ROWS, COLUMNS = np.mgrid[0:32, 0:32]
CLEAN = np.where((ROWS - 14) ** 2 + (COLUMNS - 17) ** 2 < 90, 0.8, 0.2) + 0.005 * ROWS
NOISY = CLEAN + 0.08 * DRAW.normal(size=CLEAN.shape)


def shifted(image, radius):
    """Yields the image seen from each place of a window, and the distance."""
    padded = np.pad(image, radius, mode="reflect")
    n, m = image.shape
    for i in range(-radius, radius + 1):
        for j in range(-radius, radius + 1):
            yield padded[radius + i : radius + i + n, radius + j : radius + j + m], i * i + j * j


def bilateral(image, near, alike, radius=2):
    total, weights = np.zeros_like(image), np.zeros_like(image)
    for other, distance in shifted(image, radius):
        w = np.exp(-distance / (2 * near**2) - (other - image) ** 2 / (2 * alike**2))
        total += w * other
        weights += w
    return total / weights


def edges(image):
    dx = image[1:-1, 2:] - image[1:-1, :-2]
    dy = image[2:, 1:-1] - image[:-2, 1:-1]
    return np.sqrt(dx**2 + dy**2 + 1e-6)


def local_mean(image, size=3):
    return sliding_window_view(image, (size, size)).mean(axis=(2, 3))


def block_means(image, size=8):
    n, m = image.shape
    return image.reshape(n // size, size, m // size, size).mean(axis=(1, 3))


def unsharp(image, amount):
    out = image.copy()
    out[1:-1, 1:-1] += amount * (image[1:-1, 1:-1] - local_mean(image))
    return np.clip(out, 0.0, 1.0)


def main(p):
    near, alike, amount = p
    image = bilateral(NOISY, near, alike)
    image = unsharp(image, amount)
    error = np.mean((image - CLEAN) ** 2)
    edge = np.mean((edges(image) - edges(CLEAN)) ** 2)
    blocks = np.sum((block_means(image)[::2, ::-1] - block_means(CLEAN)[::2, ::-1]) ** 2)
    return 100 * error + 10 * edge + blocks


X = np.array([1.5, 0.25, 0.4])
