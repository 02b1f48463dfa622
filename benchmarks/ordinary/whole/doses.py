"""A drug in the body: doses on a calendar, adaptive steps in while loops, a solver that raises when it fails."""

import math


class StepTooSmall(Exception):
    pass


class DidNotConverge(Exception):
    def __init__(self, last):
        super().__init__(f"last value {last}")
        self.last = last


DOSES = [(0.0, 100.0), (6.0, 80.0), (14.0, 80.0), (20.0, 120.0)]
SAMPLES = {1.0: 4.1, 3.0: 4.9, 5.5: 3.6, 8.0: 5.9, 12.0: 3.9, 16.0: 5.8, 22.0: 7.9, 30.0: 3.2}


def slopes(state, p):
    gut, blood, tissue = state
    concentration = blood / p["volume"]
    removed = p["fastest"] * concentration / (p["half"] + concentration)
    return (
        -p["absorb"] * gut,
        p["absorb"] * gut - removed - p["out"] * blood + p["back"] * tissue,
        p["out"] * blood - p["back"] * tissue,
    )


def step(state, h, p):
    """Bogacki-Shampine, with its estimate of the error."""
    k1 = slopes(state, p)
    k2 = slopes([s + h / 2 * a for s, a in zip(state, k1)], p)
    k3 = slopes([s + 3 * h / 4 * a for s, a in zip(state, k2)], p)
    new = [s + h * (2 * a + 3 * b + 4 * c) / 9 for s, a, b, c in zip(state, k1, k2, k3)]
    k4 = slopes(new, p)
    error = max(abs(h * (-5 * a / 72 + b / 12 + c / 9 - d / 8)) for a, b, c, d in zip(k1, k2, k3, k4))
    if error > 2e-2:
        raise StepTooSmall
    return new, error


def integrate(state, start, end, p):
    time, h = start, 0.5
    while time < end:
        h = min(h, end - time)
        try:
            state, error = step(state, h, p)
        except StepTooSmall:
            h = h / 2
            if h < 1e-6:
                raise
            continue
        time += h
        if error < 2e-3:
            h = 1.5 * h
        if end - time < 1e-9:
            break
    return state


def solve(f, x, tolerance=1e-12):
    for _ in range(50):
        change = f(x) / ((f(x * (1 + 1e-3)) - f(x * (1 - 1e-3))) / (2e-3 * x))
        x = x - change
        if abs(change) < tolerance:
            return x
    raise DidNotConverge(x)


def main(p):
    p = dict(zip(("absorb", "volume", "fastest", "half", "out", "back"), (math.exp(v) for v in p)))
    state, now, error = (0.0, 0.0, 0.0), 0.0, 0.0
    events = sorted(
        [(t, "dose", amount) for t, amount in DOSES] + [(t, "look", c) for t, c in SAMPLES.items()]
    )
    for time, kind, number in events:
        if time > now:
            state = integrate(state, now, time, p)
            now = time
        if kind == "dose":
            state = (state[0] + number, *state[1:])
        else:
            error += math.log(state[1] / p["volume"] / number) ** 2
    try:
        steady = solve(lambda c: p["fastest"] * c / (p["half"] + c) - 0.5 * p["fastest"] + 0.01 * c, 1.0)
    except DidNotConverge as failure:
        steady = failure.last
    return error + 0.01 * steady


X = [-0.2, 2.7, 3.0, 1.5, -1.0, -1.6]
