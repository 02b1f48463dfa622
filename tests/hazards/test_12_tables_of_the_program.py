"""Hazard 12: a table that an earlier call has filled answers with constants; what this derivative put there has its own."""

import collections
import dataclasses
import functools
import hashlib
import operator
import threading
import zlib

import numpy as np
import pytest

import plaingrad

MODES = [plaingrad.grad, plaingrad.derivative]


@pytest.fixture(params=MODES, ids=["reverse", "forward"])
def slope(request):
    """The derivative of a function of one number, by either mode."""
    return request.param


class Point:
    def __init__(self, v):
        self.v = np.array([v, 2.0])

    def __hash__(self):
        return hash(self.v.tobytes())

    def __eq__(self, other):
        return isinstance(other, Point) and np.array_equal(self.v, other.v)


@dataclasses.dataclass(frozen=True)
class Pair:
    a: float
    name: str


KEYS = {
    "number": lambda x: x,
    "tuple": lambda x: ("square", (x, 1)),
    "frozenset": lambda x: frozenset((x, "a")),
    "frozen dataclass": lambda x: Pair(x, "a"),
    "object": Point,
    "hash": hash,
    "hash of a tuple": lambda x: hash((1, x)),
    "hash of an object": lambda x: hash(("a", Point(x))),
    "hash of text": lambda x: hash(f"{x:.17g}"),
    "bytes": lambda x: np.array([x]).tobytes(),
    "hash of bytes": lambda x: hash(np.array([x]).tobytes()),
    "digest": lambda x: hashlib.md5(np.array([x]).tobytes(), usedforsecurity=False).hexdigest(),
    "digest of an array": lambda x: hashlib.sha1(np.array([x]), usedforsecurity=False).digest(),
    "checksum": lambda x: zlib.crc32(np.array([x]).tobytes()),
}


def updated(x):
    made = hashlib.sha256()
    made.update(b"model")
    made.update(np.array([x]).tobytes())
    return made.hexdigest()


KEYS["updated digest"] = updated


def asked_by_get(table, k):
    return table.get(k)


def asked_first(table, k):
    return table[k] if k in table else None


def asked_by_error(table, k):
    try:
        return table[k] or None
    except KeyError:
        return None


def popped(table, k):
    return table.pop(k, None)


def asked_by_itemgetter(table, k):
    return operator.itemgetter(k)(table) if k in table else None


ASKED = [asked_by_get, asked_first, asked_by_error, popped, asked_by_itemgetter]


def remembering(table, key, asked):
    def f(x):
        k = key(x)
        found = asked(table, k)
        if found is None:
            found = x * x
            table[k] = found
        return found

    return f


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("asked", ASKED[:2], ids=lambda f: f.__name__)
def test_what_an_earlier_call_has_kept_is_refused(slope, key, asked):
    table = {}
    f = remembering(table, KEYS[key], asked)
    assert slope(f)(3.25) == 6.5
    assert f(3.25) == 3.25**2
    with pytest.raises(plaingrad.RoundTripError, match="a table answers"):
        slope(f)(3.25)
    assert slope(f)(4.5) == 9.0
    table.clear()
    assert f(3.25) == 3.25**2
    with pytest.raises(plaingrad.RoundTripError, match="a table answers"):
        slope(f)(3.25)


@pytest.mark.parametrize("asked", ASKED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("make", [dict, collections.OrderedDict, collections.Counter], ids=lambda make: make.__name__)
def test_every_way_to_ask_and_every_dictionary(slope, asked, make):
    table = make()
    f = remembering(table, KEYS["tuple"], asked)
    assert slope(lambda x: f(x) + f(x))(3.0) == 12.0  # the second time from the table
    table[("square", (3.0, 1))] = 9.0
    with pytest.raises(plaingrad.RoundTripError, match="a table answers"):
        slope(f)(3.0)


def test_setdefault_keeps_or_is_refused(slope):
    table = {}
    assert slope(lambda x: table.setdefault(x, x * x) + table.setdefault(x, 0.0))(3.0) == 12.0
    with pytest.raises(plaingrad.RoundTripError, match="a table answers"):
        slope(lambda x: table.setdefault(x, x * x))(3.0)
    assert (
        slope(lambda x: table.setdefault(hash(x), 5.0) * x + table.setdefault(hash(x), 1.0) * x)(2.5) == 10.0
    )


@pytest.mark.parametrize("key", KEYS)
def test_constants_that_this_derivative_has_kept_are_found(slope, key):
    def f(x):
        k = KEYS[key](x)
        weights = {}
        weights[k] = 5.0
        again = KEYS[key](x)
        return weights[again] * x + weights.get(k) * x

    assert slope(f)(3.5) == 10.0
    assert slope(f)(3.5) == 10.0


def test_displays_comprehensions_and_missing_entries(slope):
    def f(x):
        y = x + 1.0
        by_number = {x: 2.0, y: 3.0}
        counted = collections.defaultdict(float)
        counted[x] += 4.0
        made = {k: 5.0 for k in (x, y)}
        filled = dict.fromkeys([x, y], 6.0)
        paired = dict(zip([x, y], [7.0, 8.0]))
        return x * (by_number[x] + counted[x] + made[y] + filled[y] + paired.get(x))

    assert slope(f)(3.0) == 2.0 + 4.0 + 5.0 + 6.0 + 7.0


def test_tables_without_numbers_and_keys_without_inputs_are_free(slope):
    names = {0.5: "half", 3.0: "three", 2: 4.0, "a": 1.5}

    def f(x):
        y = x * len(names[x]) + names[int(x) - 1] * x
        return y + names["a"] * x + {plaingrad.stop_gradient(x): 10.0}[3.0] * x

    assert slope(f)(3.0) == 5.0 + 4.0 + 1.5 + 10.0
    weights = {3.0: 7.0}
    assert slope(lambda x: weights[plaingrad.stop_gradient(x)] * x)(3.0) == 7.0
    with pytest.raises(plaingrad.RoundTripError, match="a table answers"):
        slope(lambda x: weights[x] * x)(3.0)


def test_a_refusal_is_not_swallowed(slope):
    table = {3.0: 9.0}

    def f(x):
        try:
            return table[x]
        except Exception:
            return x * x

    with pytest.raises(plaingrad.RoundTripError):
        slope(f)(3.0)


def test_levels_do_not_take_each_others_entries():
    table = {}
    f = remembering(table, KEYS["number"], asked_first)
    with pytest.raises(plaingrad.RoundTripError):
        # The second inner derivative finds what the first one has kept, with derivatives of the outer level only.
        plaingrad.grad(lambda x: plaingrad.grad(f)(x) + plaingrad.grad(f)(x))(3.0)
    table.clear()
    assert plaingrad.grad(plaingrad.grad(f))(3.0) == 2.0
    table.clear()
    assert plaingrad.derivative(plaingrad.grad(f))(3.0) == 2.0
    table.clear()

    def g(x):
        table[x] = x**3
        return plaingrad.grad(lambda y: table[x] * y)(2.0)

    assert plaingrad.grad(g)(3.0) == 27.0


def test_a_class_whose_hash_is_counted_is_asked_as_often_as_in_a_plain_call(slope):
    asked = []

    class Key:
        def __init__(self, v):
            self.v = v

        def __hash__(self):
            asked.append("hash")
            return 1

        def __eq__(self, other):
            asked.append("eq")
            return self.v == other.v

    def f(x):
        asked.clear()
        table = {Key(x): x * x}
        y = table[Key(x)] + table.get(Key(x)) + table.setdefault(Key(x), 0.0) + table.pop(Key(x))
        return y

    plain = f(3.0)
    expected = list(asked)
    assert plain == 36.0 and slope(f)(3.0) == 24.0 and asked == expected


def test_two_threads_have_tables_of_their_own():
    found = []

    def work(x):
        table = {}
        f = remembering(table, KEYS["hash of bytes"], asked_first)
        found.append((plaingrad.grad(lambda x: f(x) + f(x))(x), 4.0 * x))

    threads = [threading.Thread(target=work, args=(1.5 + k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 4 and all(a == b for a, b in found)


def test_errors_are_those_of_the_plain_call(slope):
    def f(x, ask):
        try:
            ask(x)
        except (KeyError, TypeError) as error:
            return x * len(error.args)
        return 5.0 * x

    for ask in (
        lambda x: {}[x], lambda x: {}.get([x]), lambda x: {}.get(), lambda x: {}.pop(x), lambda x: {}.pop(),
        lambda x: {}.setdefault([x]), lambda x: {1: 2}[[x]], lambda x: dict.get({}), lambda x: {1: 2}.get(1, 2, 3),
        lambda x: {1: 2}.get(1, default=3), lambda x: {1: 2}.pop(1, 2, 3),
    ):  # fmt: skip
        assert slope(functools.partial(f, ask=ask))(3.0) == 1.0
