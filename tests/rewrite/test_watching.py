"""Code that tells what it compares does and returns what it did."""

import math

from plaingrad.rewrite.watching import watching, watching_function

SEEN = []
TOLD = {
    "compared": lambda a, b: SEEN.append(("compared", a, b)),
    "divided": lambda a, b: SEEN.append(("divided", a, b)),
    "prep": lambda f: (SEEN.append(f), f)[1],
    "method": lambda o, name: (SEEN.append((o, name)), o)[1],
    "attribute": lambda o, name: (SEEN.append((o, name)), getattr(o, name))[1],
    "operands": lambda *parts: SEEN.append(parts),
}


def many(x, p=0.3, *rest, k=2):
    s = 0.0
    for i in range(k):
        if x < p <= 1.0 or x == p:
            s += math.sin(x)
        else:
            s -= max(x, p, key=lambda z: -z)
    s += x // 0.25 + sum(x > j for j in [0.1, 0.2, 0.9]) + sum([i for i in range(3) if i >= x])
    try:
        assert x > 5, "no"
    except AssertionError:
        s += x % 0.3
    return s


def test_values_are_those_of_the_function():
    for x in (0.1, 0.3, 0.4, 7.0):
        SEEN.clear()
        told = watching_function(many, TOLD)
        assert told(x) == many(x) and told(x, 0.5, k=3) == many(x, 0.5, k=3)
        assert ("compared", x, 0.3) in SEEN and ("divided", x, 0.25) in SEEN and sum in SEEN


def test_closures_are_shared_and_code_is_made_once():
    count = 0

    def counting(x):
        nonlocal count
        count += 1 if x > 0 else 2
        return count

    told = watching_function(counting, TOLD)
    assert [told(1), counting(-1), told(1)] == [1, 3, 4] and count == 4
    assert watching(counting.__code__, TOLD) is told.__code__


def test_generators_and_handlers_go_on():
    def going(n):
        with_error = 0
        for i in range(n):
            try:
                if (yield i) == "stop":
                    return
            except ValueError:
                with_error += 1
                yield -with_error

    told = watching_function(going, TOLD)(5)
    assert next(told) == 0 and told.send("go") == 1 and told.throw(ValueError) == -1 and next(told) == 2
