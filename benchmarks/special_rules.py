"""What a rule of one's own buys in time and memory, as docs/how-to/approximate-and-special-rules.md says.

python benchmarks/special_rules.py
"""

import math
import time
import tracemalloc

import numpy as np

import plaingrad
from plaingrad import grad


def kepler(anomaly, eccentricity):
    e = anomaly
    for _ in range(20):
        e = e - (e - eccentricity * math.sin(e) - anomaly) / (1.0 - eccentricity * math.cos(e))
    return e


def kepler_rrule(anomaly, eccentricity):
    e = kepler(anomaly, eccentricity)

    def kepler_pullback(e_bar):
        anomaly_bar = e_bar / (1.0 - eccentricity * math.cos(e))
        return anomaly_bar, anomaly_bar * math.sin(e)

    return e, kepler_pullback


def orbit(eccentricity):
    return sum(math.cos(kepler(0.01 * k, eccentricity)) for k in range(300))


def softmax(x):
    exponentials = np.exp(x - x.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def softmax_rrule(x):
    y = softmax(x)

    def softmax_pullback(y_bar):
        return (y * (y_bar - (y_bar * y).sum(axis=1, keepdims=True)),)

    return y, softmax_pullback


def layers(x):
    for _ in range(20):
        x = softmax(x)
    return (x[:, 0] ** 2).sum()


def seconds(f, repeats):
    best = math.inf
    for _ in range(7):
        start = time.process_time()
        for _ in range(repeats):
            f()
        best = min(best, (time.process_time() - start) / repeats)
    return best


def peak(f):
    tracemalloc.start()
    f()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def main():
    plain = seconds(lambda: orbit(0.3), 5)
    without = seconds(lambda: grad(orbit)(0.3), 5)
    plaingrad.rrule(kepler)(kepler_rrule)
    with_rule = seconds(lambda: grad(orbit)(0.3), 5)
    print(
        f"time   Kepler: {without * 1e3:.1f} ms derived, {with_rule * 1e3:.1f} ms by rule: {without / with_rule:.1f}x"
    )
    print(
        f"       plain call {plain * 1e3:.1f} ms: {without / plain:.1f}x and {with_rule / plain:.1f}x of it"
    )
    x = np.random.default_rng(0).normal(size=(2000, 100))
    ask = lambda: grad(layers)(x)
    without, slow = peak(ask), seconds(ask, 1)
    plaingrad.rrule(softmax)(softmax_rrule)
    with_rule, fast = peak(ask), seconds(ask, 1)
    arrays = [without / x.nbytes, with_rule / x.nbytes]
    print(
        f"memory softmax: {arrays[0]:.0f} arrays derived, {arrays[1]:.0f} by rule: {without / with_rule:.1f}x"
    )
    print(f"       time {slow * 1e3:.0f} ms derived, {fast * 1e3:.0f} ms by rule: {slow / fast:.1f}x")


if __name__ == "__main__":
    main()
