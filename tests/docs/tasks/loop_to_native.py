"""A slow loop, compiled, with its gradient. Search: native. Page: docs/how-to/go-native.md."""

import math

from plaingrad import grad


def pendulum(angle, steps):
    speed = 0.0
    for _ in range(steps):
        speed -= 0.01 * math.sin(angle)
        angle += 0.01 * speed
    return angle


natively = grad(pendulum, tier="native")(1.0, 1000)
assert math.isclose(natively, grad(pendulum)(1.0, 1000), rel_tol=1e-9)
