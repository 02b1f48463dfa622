"""Programs of arithmetic alone, for numbers of every kind, and jets that say exactly what their derivatives are.

A jet is a truncated power series `a + b t + c t**2` over any numbers: `f(jet(x))` has f(x), f'(x) and f''(x) / 2, by
operators alone. Nothing of plaingrad is in it.
"""

from __future__ import annotations

from collections import deque
from functools import partial, reduce
from itertools import accumulate, takewhile


class Jet:
    """Value, slope and half of the second derivative, of a kind of numbers that adds, multiplies and divides."""

    def __init__(self, *parts):
        self.parts = parts

    def series(self, other):
        return other.parts if isinstance(other, Jet) else (other, self.parts[1] * 0, self.parts[1] * 0)

    def __add__(self, other):
        return Jet(*(a + b for a, b in zip(self.parts, self.series(other), strict=True)))

    def __neg__(self):
        return Jet(*(-a for a in self.parts))

    def __sub__(self, other):
        return Jet(*(a - b for a, b in zip(self.parts, self.series(other), strict=True)))

    def __rsub__(self, other):
        return Jet(*(b - a for a, b in zip(self.parts, self.series(other), strict=True)))

    def __mul__(self, other):
        (a, b, c), (u, v, w) = self.parts, self.series(other)
        return Jet(a * u, a * v + b * u, a * w + b * v + c * u)

    def __truediv__(self, other):
        (a, b, c), (u, v, w) = self.parts, self.series(other)
        first = a / u
        second = (b - first * v) / u
        return Jet(first, second, (c - first * w - second * v) / u)

    def __rtruediv__(self, other):
        return Jet(*self.series(other)) / self

    def __pow__(self, n):
        assert isinstance(n, int)
        if n < 0:
            return 1 / self**-n
        return reduce(lambda p, _: p * self, range(n - 1), self) if n else self * 0 + 1

    def __abs__(self):
        return -self if self.parts[0] < 0 * self.parts[0] else self

    def __lt__(self, other):
        return self.parts[0] < self.series(other)[0]

    def __gt__(self, other):
        return self.parts[0] > self.series(other)[0]

    __radd__, __rmul__ = __add__, __mul__


def jet(x, one=1):
    return Jet(x, x * 0 + one, x * 0)


class Account:
    rate = 3

    def __init__(self, x):
        self.held = x

    def pay(self, years):
        for _ in range(years):
            self.held = self.held + self.held / self.rate
        return self

    @property
    def balance(self):
        return self.held * self.held


def babylonian(x):
    y = x / x
    for _ in range(4):
        y = (y + x / y) / 2
    return y


def continued(x, depth=5):
    return x if depth == 0 else depth + 1 / (x + continued(x, depth - 1))


def powers(x):
    y = x
    while True:
        yield y
        y = y * x


def first_powers(x):
    source = powers(x)
    return sum((next(source) for _ in range(4)), x * 0)


def determinant(x):
    m = [[x + 2, x * 0 + 1, x * 2], [x * x, x, x * 0 + 3], [x * 0 + 1, x / 5, x]]
    product = x / x
    for k in range(3):
        product = product * m[k][k]
        for row in range(k + 1, 3):
            factor = m[row][k] / m[k][k]
            m[row] = [a - factor * b for a, b in zip(m[row], m[k], strict=True)]
    return product


def guarded(x):
    held = {}
    try:
        held["a"] = x * x
        return held["b"]
    except KeyError:
        return held["a"] / 7
    finally:
        held.clear()


def in_place(x):
    total = [x, x * 2]
    for k in range(3):
        total[k % 2] += total[(k + 1) % 2] * x
        total[0] -= x
    total[1] /= x
    return total[0] * total[1]


def closed(x):
    count = x * 0

    def add(y):
        nonlocal count
        count = count + y * x
        return count

    for k in range(1, 4):
        add(x * k)
    return count


def branches(x):
    if x > 1:
        return x**3
    return (2 - x) * x if x > 0 else -x


def queue(x):
    d = deque([x, x * x, x * x * x], maxlen=3)
    d.append(d[0] * d[2])
    d.rotate(1)
    return d[0] - d[1]


def sorted_and_largest(x):
    held = sorted([x * x, x, x * 5, x - 1])
    return held[0] * held[-1] + max(x, x * x) * min(x * 3, x * 4)


def unpacked(x):
    first, *others, last = (x * k + 1 for k in range(5))
    return first * last + others[0] * others[-1]


#: name: program of one number
PROGRAMS = {
    "polynomial": lambda x: 3 * x * x * x - x * 5 + 2,
    "quotient": lambda x: (x + 1) / (x * x + 2),
    "reflected": lambda x: (2 - x) + 3 / x - (1 + x),
    "powers": lambda x: x**4 + x**-2 + x**0 + x**1,
    "minus": lambda x: -x * -(x - 3),
    "modulus": lambda x: abs(-x) * x + abs(x - 9),
    "sum": lambda x: sum([x, x * x, x / 3], x * 0),
    "product": lambda x: reduce(lambda a, b: a * b, [x, x + 1, x + 2]),
    "horner": lambda x: reduce(lambda a, c: a * x + c, [2, -1, 4], x * 0),
    "accumulated": lambda x: list(accumulate([x, x, x * x], lambda a, b: a * b))[-1],
    "taken while": lambda x: sum(takewhile(lambda v: v < 40, (x * k for k in range(1, 4))), x * 0) * x,
    "partial": lambda x: partial(lambda a, b: a / b, x)(x + 2),
    "default": lambda x: (lambda y, scale=x: y * scale)(x * x),
    "dictionary": lambda x: {k: v * x for k, v in [("a", x), ("b", x * x)]}["b"],
    "object": lambda x: Account(x).pay(3).balance,
    "babylonian root": babylonian,
    "continued fraction": continued,
    "generator": first_powers,
    "determinant": determinant,
    "exception": guarded,
    "in place": in_place,
    "closure": closed,
    "branches": branches,
    "queue": queue,
    "sorted": sorted_and_largest,
    "unpacked": unpacked,
}
