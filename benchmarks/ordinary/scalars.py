"""Programs over floats, lists, dicts, objects and generators, as their users write them.

Each is a function of one argument that returns a number, and the argument.
"""

import math
import random

from benchmarks.ordinary.program import program

RANDOM = random.Random(1)


def numbers(n, low=-1.0, high=1.0):
    """n reproducible floats."""
    return [RANDOM.uniform(low, high) for _ in range(n)]


def logistic_step(x, rate):
    return rate * x * (1.0 - x)


@program("scalar loop, function called inside", 0.3, goal=3.5)
def scalar_loop(x):
    rate = 3.1
    for _ in range(2000):
        x = logistic_step(x, rate) + 0.01 * math.sin(x)
    return x


class Body:
    """A point mass in the plane."""

    def __init__(self, x, y, vx, vy, mass):
        self.x, self.y, self.vx, self.vy, self.mass = x, y, vx, vy, mass

    def attract(self, other, dt):
        dx = other.x - self.x
        dy = other.y - self.y
        d2 = dx * dx + dy * dy + 0.01
        pull = other.mass / (d2 * math.sqrt(d2))
        self.vx += pull * dx * dt
        self.vy += pull * dy * dt

    def move(self, dt):
        self.x += self.vx * dt
        self.y += self.vy * dt


@program("bodies as objects with attributes", numbers(32), goal=5)
def bodies(v):
    found = [Body(v[k], v[k + 1], v[k + 2], v[k + 3], 1.0) for k in range(0, len(v), 4)]
    for _ in range(20):
        for a in found:
            for b in found:
                if a is not b:
                    a.attract(b, 0.01)
        for a in found:
            a.move(0.01)
    return sum(b.x * b.x + b.y * b.y for b in found)


@program("matrix product and elimination in lists of lists", numbers(36), goal=4)
def elimination(v):
    n = 6
    a = [[v[i * n + j] + (4.0 if i == j else 0.0) for j in range(n)] for i in range(n)]
    b = [[sum(a[i][k] * a[j][k] for k in range(n)) for j in range(n)] for i in range(n)]
    log_det = 0.0
    for k in range(n):
        log_det = log_det + math.log(b[k][k])
        for i in range(k + 1, n):
            f = b[i][k] / b[k][k]
            for j in range(k, n):
                b[i][j] = b[i][j] - f * b[k][j]
    return log_det


GRAPH = {k: [(7 * k + 3) % 40, (11 * k + 5) % 40, (k + 1) % 40] for k in range(40)}


@program("message passing over a dict graph", numbers(40), goal=4)
def messages(v):
    state = dict(enumerate(v))
    for _ in range(10):
        new = {}
        for node, neighbours in GRAPH.items():
            total = 0.0
            for other in neighbours:
                total = total + state[other] * 0.3
            new[node] = math.tanh(state[node] * 0.5 + total)
        state = new
    return sum(state.values())


class Expression:
    """A node of an expression tree."""

    def __add__(self, other):
        return Sum(self, other)

    def __mul__(self, other):
        return Product(self, other)


class Variable(Expression):
    def __init__(self, name):
        self.name = name

    def value(self, env):
        return env[self.name]


class Sum(Expression):
    def __init__(self, left, right):
        self.left, self.right = left, right

    def value(self, env):
        return self.left.value(env) + self.right.value(env)


class Product(Sum):
    def value(self, env):
        return self.left.value(env) * self.right.value(env)


class Sine(Expression):
    def __init__(self, inner):
        self.inner = inner

    def value(self, env):
        return math.sin(self.inner.value(env))


def tree(depth):
    """A full tree with sums, products and sines."""
    if depth == 0:
        return Variable("x")
    left, right = tree(depth - 1), tree(depth - 1)
    return Sine(left * right) if depth % 2 else left + right


TREE = tree(8)


@program("tree of expression objects, methods, recursion", 0.7, goal=5)
def expression_tree(x):
    return TREE.value({"x": x})


def differences(values):
    before = None
    for x in values:
        if before is not None:
            yield x - before
        before = x


def smoothed(values, rate):
    state = 0.0
    for x in values:
        state = state + rate * (x - state)
        yield state


@program("generator pipeline", numbers(500), goal=5)
def pipeline(v):
    return sum(d * d for d in differences(smoothed(v, 0.2)))


@program("list appended", 0.5, goal=5)
def appended(x):
    path = [x]
    for k in range(1000):
        path.append(path[-1] * 0.99 + 0.01 * path[k // 2])
    return path[-1]


@program("ten operations", 0.7, goal=None)
def ten_operations(x):
    y = math.sin(x) * x + 2.0
    z = y / (1.0 + x * x) - x
    return z * z - y / 3.0


@program("Rosenbrock over a list", numbers(100), goal=None)
def rosenbrock(v):
    total = 0.0
    for k in range(len(v) - 1):
        total = total + 100.0 * (v[k + 1] - v[k] ** 2) ** 2 + (1.0 - v[k]) ** 2
    return total


@program("complex root finder", 0.7, goal=None)
def complex_roots(x):
    z = complex(1.0, x)
    for _ in range(60):
        z = z - (z * z * z - x) / (3.0 * z * z + 0.1)
    return abs(z) + z.real


@program("dispatch by try, closures and defaults", 0.4, goal=None)
def dispatch(x):
    table = {"grow": lambda t, r=1.01: t * r, "wave": lambda t: math.sin(t) + 1.0}
    total = 0.0
    for k in range(600):
        try:
            f = table["grow" if k % 2 else "wave" if k % 3 else "none"]
        except KeyError:
            total = total - x
            continue
        x = f(x)
        total = total + x
    return total
