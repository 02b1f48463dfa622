"""A quaternion attitude filter in NumPy: a gyroscope corrected by accelerometer and compass."""

import numpy as np

DRAW = np.random.default_rng(2)
STEPS, DT = 15, 0.02
RATES = np.stack(
    [np.sin(np.arange(STEPS) * 0.1), np.cos(np.arange(STEPS) * 0.07), np.full(STEPS, 0.3)], axis=1
)
DOWN = DRAW.normal(size=(STEPS, 3)) * 0.05 + [0.0, 0.0, 1.0]
NORTH = DRAW.normal(size=(STEPS, 3)) * 0.05 + [1.0, 0.0, 0.3]


def multiply(p, q):
    w = p[0] * q[0] - p[1:] @ q[1:]
    v = p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:])
    return np.concatenate([[w], v])


def conjugate(q):
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def rotate(q, v):
    return multiply(multiply(q, np.concatenate([[0.0], v])), conjugate(q))[1:]


def from_rotation(vector):
    angle = np.linalg.norm(vector)
    if angle < 1e-9:
        return np.array([1.0, 0.0, 0.0, 0.0])
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * vector / angle])


class Filter:
    def __init__(self, gain, bias_gain, bias):
        self.q = np.array([1.0, 0.0, 0.0, 0.0])
        self.gain, self.bias_gain, self.bias = gain, bias_gain, bias

    def update(self, rate, down, north):
        error = np.cross(down / np.linalg.norm(down), rotate(conjugate(self.q), np.array([0.0, 0.0, 1.0])))
        error = error + np.cross(
            north / np.linalg.norm(north), rotate(conjugate(self.q), np.array([1.0, 0.0, 0.0]))
        )
        self.bias = self.bias - self.bias_gain * error * DT
        turn = (rate - self.bias + self.gain * error) * DT
        self.q = multiply(self.q, from_rotation(turn))
        self.q = self.q / np.linalg.norm(self.q)
        return error


def main(theta):
    f = Filter(theta[0], theta[1], theta[2:])
    cost = 0.0
    for rate, down, north in zip(RATES, DOWN, NORTH):
        error = f.update(rate, down, north)
        cost = cost + np.dot(error, error)
    return cost + (f.q[0] - 0.9) ** 2


X = np.array([2.0, 0.3, 0.05, -0.02, 0.01])
