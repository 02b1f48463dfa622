"""What one operation of ordinary Python costs in a derivative: where the time of whole programs goes.

    python -m benchmarks.ordinary.operations              # every operation, the dearest first
    python -m benchmarks.ordinary.operations math sum     # those with these words in their names

Each is the body of a loop of 200 rounds that changes the number x; the table has microseconds a round: of a plain call,
of a gradient, of `jvp` and of `hvp`, the cost without any round (last line) taken off.
"""

# ruff: noqa: F401 - the loops use what is imported here

import argparse
import collections
import functools
import heapq
import itertools
import math
import operator
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import plaingrad

ROUNDS = 200


class Pair(NamedTuple):
    a: float
    b: float


@dataclass(frozen=True)
class Data:
    a: float
    b: float


class Property:
    def __init__(self, v):
        self._v = v

    @property
    def v(self):
        return self._v

    @v.setter
    def v(self, v):
        self._v = v


class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)


FIRST = operator.itemgetter(0)
PARTIAL = functools.partial(lambda k, a: a * k, 1.001)
SCALE = lambda a: a * 1.001
NUMBER, ARRAY = np.float64(1.5), np.ones(3)


def keywords(a, b):
    return a + b


OPERATIONS = {
    "arithmetic: x * 1.001 + 0.1": "x = x * 1.001 + 0.1",
    "math.sin": "x = math.sin(x)",
    "math.log1p": "x = math.log1p(x)",
    "math.degrees": "x = math.degrees(x) * 0.01",
    "math.radians": "x = math.radians(x)",
    "math.atan2": "x = math.atan2(x, 1.0)",
    "math.hypot": "x = math.hypot(x, 1.0) * 0.5",
    "power: x**2": "x = 0.1 * x**2 + 1.0",
    "power: x**7": "x = (0.1 * x) ** 7 + 1.0",
    "power: x**(1/3)": "x = x ** (1 / 3)",
    "power: 0.5**x": "x = 0.5**x",
    "remainder: x % 1.7": "x = x % 1.7 + 0.3",
    "abs": "x = abs(x)",
    "max of two": "x = max(x, 0.1)",
    "max of a list": "x = max([x, 0.1, 0.2, 0.3])",
    "sum of a generator": "x = 0.3 * sum(a for a in (x, x, x, x))",
    "sum of a list": "x = 0.2 * sum([x, x, x, x])",
    "sum of a generator with a start": "x = 0.2 * sum((a for a in (x, x, x)), x)",
    "complex numbers": "z = complex(x, 1.0); z = z * z; x = 0.3 * abs(z)",
    "call: function": "x = SCALE(x)",
    "call: keywords": "x = keywords(a=x, b=0.1)",
    "call: partial": "x = PARTIAL(x)",
    "call: itemgetter": "x = FIRST((x, 1.0))",
    "itertools.accumulate": "x = 0.2 * list(itertools.accumulate((x, x, x, x)))[-1]",
    "itertools.accumulate with a function": "x = list(itertools.accumulate((x, x), lambda s, a: s + 0.1 * a))[-1]",
    "functools.reduce": "x = 0.3 * functools.reduce(lambda s, a: s + a, (x, x, x, x))",
    "map": "x = list(map(SCALE, (x, x, x, x)))[0]",
    "zip": "x = 0.5 * [a + b for a, b in zip((x, x), (x, 0.1))][1]",
    "list: append, index": "some.append(x); x = some[-1]",
    "list: slice": "x = [x, x, x][1:][0]",
    "list: sorted": "x = sorted([x, 0.5 * x, 0.1, 0.2])[2]",
    "tuple: unpacked": "a, *r = (x, x, x); x = r[0]",
    "dict: build, get": "d = {'a': x}; x = d['a']",
    "dict: setdefault, get": "d = {}; d.setdefault('a', x); x = d.get('a', 0.0)",
    "dict: defaultdict +=": "sums['a'] += x; x = 0.1 * sums['a']",
    "deque": "queue.append(x); x = queue.popleft()",
    "heapq of 40": "heapq.heappush(heap, (x, 1)); x = heapq.heappop(heap)[0]",
    "object: attributes": "o = Vector(x, 1.0); x = o.x",
    "object: operator": "x = 0.5 * (Vector(x, x) + Vector(x, 1.0)).x",
    "object: property": "held.v = x; x = held.v",
    "object: dataclass": "x = Data(x, 1.0).a",
    "object: dataclass, replace": "x = replace(Data(x, 1.0), b=x).b",
    "object: named tuple": "x = Pair(x, 1.0).a",
    "object: named tuple, _replace": "x = Pair(x, 1.0)._replace(b=x).b",
    "match": "match Pair(x, 1.0):\n            case Pair(a=a) if a > 0: x = a",
    "exception": "try:\n            if x > 0: raise KeyError\n        except KeyError: x = 0.9 * x",
    "text": "s = f'{x:.1f}'; x = 1.001 * x",
    "np.float64": "y = NUMBER * x; x = 0.5 * y + 0.1",
    "np.exp of a number": "x = 0.1 * np.exp(x)",
    "array: element read": "x = ARRAY[1] * x",
    "array: element written": "store[1] = x; x = store[1]",
    "array of 3: arithmetic": "store = 0.5 * store + x; x = 0.9 * x",
    "array of 3: slice": "x = 0.9 * x + 0.01 * np.sum(store[1:] * x)",
}
LOOP = """def f(x):
    held, queue, some, sums = Property(0.0), collections.deque([0.1] * 3), [], collections.defaultdict(float)
    heap, store = [(5 + 0.01 * k, k) for k in range(40)], np.zeros(3)
    for _ in range({rounds}):
        {body}
    return x
"""


def function(body: str, rounds: int) -> Callable[[float], float]:
    """The loop."""
    names = dict(globals())
    exec(LOOP.format(rounds=rounds, body=body), names)
    return names["f"]


def least(call: Callable[[], Any], seconds: float) -> float:
    """The least time of a call, in microseconds."""
    call()
    best, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        begun = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begun)
    return 1e6 * best


def times(body: str, rounds: int, seconds: float) -> list[float]:
    """Of a plain call, a gradient, a jvp and an hvp."""
    f = function(body, rounds)
    gradient = plaingrad.grad(f)
    calls = (
        lambda: f(0.7),
        lambda: gradient(0.7),
        lambda: plaingrad.jvp(f, (0.7,), (1.0,)),
        lambda: plaingrad.hvp(f, (0.7,), (1.0,)),
    )
    return [least(call, seconds) for call in calls]


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("words", nargs="*", help="operations with one of these in their names")
    options.add_argument("--seconds", type=float, default=0.1, help="for each figure (default %(default)g)")
    given = options.parse_args()
    fixed = times("x = x", 0, given.seconds)
    rows = {}
    for name, body in OPERATIONS.items():
        if not given.words or any(word in name for word in given.words):
            found = times(body, ROUNDS, given.seconds)
            rows[name] = [max(t - f, 0.0) / ROUNDS for t, f in zip(found, fixed)]
    print(f"microseconds; core: {plaingrad.info()['core']}\n")
    print(f"{'operation':40}{'plain':>8}{'gradient':>10}{'jvp':>8}{'hvp':>8}{'gradient / plain':>18}")
    for name, row in sorted(rows.items(), key=lambda item: -item[1][1]):
        ratio = row[1] / row[0] if row[0] else 0.0
        print(f"{name:40}{row[0]:8.2f}{row[1]:10.2f}{row[2]:8.2f}{row[3]:8.2f}{ratio:18.0f}")
    print(f"{'no round at all':40}{fixed[0]:8.2f}{fixed[1]:10.2f}{fixed[2]:8.2f}{fixed[3]:8.2f}")


if __name__ == "__main__":
    main()
