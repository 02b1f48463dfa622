"""A signal chain in functional style: filters are closures, composed by reduce; state is passed along by accumulate."""

import functools
import itertools
import math
import operator


def compose(*functions):
    return functools.reduce(lambda f, g: lambda xs: g(f(xs)), functions)


def each(function):
    return functools.partial(map, function)


def gain(k):
    return each(lambda x: k * x)


def saturate(drive):
    return each(lambda x: math.tanh(drive * x) / drive)


def one_pole(rate):
    def run(xs):
        return itertools.accumulate(xs, lambda y, x: y + rate * (x - y), initial=0.0)

    return run


def resonator(frequency, width):
    """A two-pole filter; its state is a pair."""
    r = math.exp(-width)
    a, b = 2 * r * math.cos(frequency), -r * r

    def step(state, x):
        y1, y2 = state
        return a * y1 + b * y2 + x, y1

    def run(xs):
        return map(operator.itemgetter(0), itertools.accumulate(xs, step, initial=(0.0, 0.0)))

    return run


def windows(size, xs):
    iterators = itertools.tee(xs, size)
    for k, iterator in enumerate(iterators):
        next(itertools.islice(iterator, k, k), None)
    return zip(*iterators)


def power(xs):
    return sum(x * x for x in xs) / 4


def signal(n):
    return (math.sin(0.3 * k) + (0.5 if k % 7 == 0 else 0.0) for k in range(n))


def main(p):
    rate, drive, frequency, width, level = p
    chain = compose(one_pole(rate), gain(level), saturate(drive), resonator(frequency, width))
    powers = list(map(power, windows(4, chain(signal(150)))))
    target = map(lambda k: 2.0 + math.sin(0.1 * k), itertools.count())
    errors = itertools.starmap(operator.sub, zip(powers, target))
    return functools.reduce(lambda total, e: total + e * e, errors, 0.0) / len(powers)


X = [0.4, 1.5, 0.35, 0.1, 2.0]
