"""American and barrier options on a binomial lattice in lists, and their hedge, with functions and plain loops."""

from math import exp, sqrt


def lattice(spot, up, down, steps):
    """Prices by level: level n has n + 1 of them."""
    levels = [[spot]]
    for _ in range(steps):
        last = levels[-1]
        levels.append([last[0] * up] + [price * down for price in last])
    return levels


def call(price, strike):
    return max(price - strike, 0.0)


def put(price, strike):
    return max(strike - price, 0.0)


PAYOFFS = {"call": call, "put": put}


def value(kind, spot, strike, rate, volatility, years, steps=24, american=True, barrier=None):
    dt = years / steps
    up = exp(volatility * sqrt(dt))
    down = 1 / up
    p = (exp(rate * dt) - down) / (up - down)
    if not 0 < p < 1:
        raise ValueError("the steps are too long for this volatility")
    discount = exp(-rate * dt)
    payoff = PAYOFFS[kind]
    levels = lattice(spot, up, down, steps)
    values = [payoff(price, strike) for price in levels[-1]]
    for level in reversed(levels[:-1]):
        held = [
            discount * (p * above + (1 - p) * below)
            for above, below in zip(values[:-1], values[1:], strict=True)
        ]
        if american:
            values = [max(hold, payoff(price, strike)) for hold, price in zip(held, level)]
        else:
            values = held
        if barrier is not None:
            values = [v if price < barrier else 0.0 for v, price in zip(values, level)]
    return values[0]


QUOTES = [
    ("put", 95.0, 0.5, 2.9),
    ("put", 105.0, 0.5, 7.4),
    ("call", 100.0, 0.75, 8.9),
    ("call", 110.0, 1.0, 6.8),
]


def main(p):
    """How far the model is from what the market quotes, and the price of a knock-out."""
    spot, rate, volatility, skew = p
    error = 0.0
    for kind, strike, years, quote in QUOTES:
        sigma = volatility + skew * (strike / 100 - 1)
        error += (value(kind, spot, strike, rate, sigma, years) - quote) ** 2
    knocked = value("call", spot, 100.0, rate, volatility, 0.5, american=False, barrier=131.0)
    return error + 0.1 * knocked


X = [100.3, 0.04, 0.22, -0.1]
