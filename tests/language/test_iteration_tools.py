"""itertools and the iterating builtins: values pass through C iterators and callbacks."""

import collections
import functools
import itertools
import json
import math
import operator
import xml.parsers.expat

import numpy as np
import pytest

import plaingrad
from cases import check, check_or_refused


def test_accumulate_sums_multiplies_and_takes_any_function_and_start():
    def f(v):
        sums = list(itertools.accumulate(v))
        products = list(itertools.accumulate(v, operator.mul))
        custom = list(itertools.accumulate(v, lambda a, b: a * 0.5 + b * b, initial=1.0))
        maxima = list(itertools.accumulate(v, max))
        return sums[-1] * sums[1] + products[-1] + custom[-1] + maxima[-1] * 3

    a, b, c = v = [2.0, 1.0, 4.0]
    s1, s2 = a + b, a + b + c
    check(
        f,
        v,
        gradient=[s1 + s2 + b * c + 0.5 * a, s1 + s2 + a * c + b, s1 + a * b + 2 * c + 3],
    )


def test_count_with_active_start_and_step_adds_in_c():
    def f(x, h):
        grid = list(itertools.islice(itertools.count(x, h), 4))
        ones = itertools.count(x)
        next(ones)
        return sum(a * a for a in grid) + next(ones)

    x, h = 1.5, 0.25
    grid = [x + k * h for k in range(4)]
    check(f, x, h, gradient=(2 * sum(grid) + 1, 2 * sum(k * a for k, a in enumerate(grid))))


def test_cycle_and_repeat_hand_out_the_same_objects():
    def f(x, y):
        wheel = itertools.cycle([x, y])
        a = [next(wheel) for _ in range(5)]
        b = list(itertools.repeat(x * y, 3))
        c = list(map(pow, itertools.repeat(x, 2), (2, 3)))
        return sum(a) + sum(b) + sum(c) + (b[0] is b[2])

    x, y = 2.0, 3.0
    check(f, x, y, gradient=(3 + 3 * y + 2 * x + 3 * x * x, 2 + 3 * x))


def test_chain_concatenates_and_flattens():
    def f(x, y):
        a = itertools.chain([x], (y * y,), (v for v in [x * y]))
        b = itertools.chain.from_iterable([[x, y], [x]])
        return sum(k * v for k, v in enumerate(itertools.chain(a, b), start=1))

    # x + 2yy + 3xy + 4x + 5y + 6x
    x, y = 2.0, 3.0
    check(f, x, y, gradient=(11 + 3 * y, 4 * y + 3 * x + 5))


def test_compress_dropwhile_takewhile_and_filterfalse_select():
    def f(v):
        a = itertools.compress(v, [1, 0, 1, 0])
        b = itertools.dropwhile(lambda u: u * u < 5, v)
        c = itertools.takewhile(lambda u: u < 3, v)
        d = itertools.filterfalse(lambda u: u > 2, v)
        e = itertools.compress(v, v)
        return sum(a) + 10 * sum(b) + 100 * sum(c) + 1000 * sum(d) + 10000 * sum(e)

    check(f, [1.0, 1.5, 3.0, 0.0], gradient=[11101.0, 11100.0, 10011.0, 1010.0])


def test_groupby_computes_keys_and_shares_them():
    def f(v):
        total = 0.0
        for key, group in itertools.groupby(sorted(v, key=abs), key=lambda u: round(abs(u))):
            total += key * sum(u * u for u in group)
        for k2, g in itertools.groupby([v[0], v[0], v[1]], key=lambda u: u * 2.0):
            total += k2 * len(list(g))
        return total

    # abs sorted: 0.9, -1.1 | 2.0 : keys 1, 2 ; then 2 v0 * 2 + 2 v1
    check(f, [-1.1, 2.0, 0.9], gradient=[-2.2 + 4.0, 2 * 4.0 + 2.0, 1.8])


def test_islice_pairwise_and_tee_walk_the_same_values():
    def f(v):
        a, b = itertools.tee(u * u for u in v)
        next(b)
        differences = [p - q for p, q in zip(b, a, strict=False)]
        arcs = sum(math.hypot(q - p, 1.0) for p, q in itertools.pairwise(v))
        return differences[0] * differences[1] + arcs + sum(itertools.islice(v, 1, None, 2))

    a, b, c = v = [1.0, 3.0, 2.5]
    d0, d1 = b * b - a * a, c * c - b * b
    h0, h1 = (b - a) / math.hypot(b - a, 1), (c - b) / math.hypot(c - b, 1)
    check(f, v, gradient=[-2 * a * d1 - h0, 2 * b * d1 - 2 * b * d0 + h0 - h1 + 1, 2 * c * d0 + h1])


def test_starmap_applies_python_and_c_functions():
    def f(x, y):
        a = itertools.starmap(pow, [(x, 2.0), (y, x)])
        b = itertools.starmap(lambda u, w, *z: u * w + sum(z), [(x, y), (y, y, x)])
        return sum(a) + sum(b)

    # x^2 + y^x + xy + y^2 + x
    x, y = 2.0, 3.0
    check(f, x, y, gradient=(2 * x + y**x * math.log(y) + y + 1, x * y ** (x - 1) + x + 2 * y))


def test_zip_longest_fills_with_an_active_value():
    def f(v, fill):
        return sum(a * b for a, b in itertools.zip_longest(v, [10.0], fillvalue=fill))

    check(f, [1.0, 2.0, 3.0], 0.5, gradient=([10.0, 0.5, 0.5], 5.0))


def test_product_permutations_and_combinations_repeat_values():
    def f(v):
        p = sum(a * b for a, b in itertools.product(v, repeat=2))
        q = sum(a * b * b for a, b in itertools.permutations(v, 2))
        r = sum(math.prod(c) for c in itertools.combinations(v, 2))
        s = sum(math.prod(c) for c in itertools.combinations_with_replacement(v, 2))
        return p + q + r + s

    v = [1.0, 2.0, 3.0]
    total = sum(v)
    g = []
    for i, a in enumerate(v):
        others = [b for j, b in enumerate(v) if j != i]
        q = sum(b * b + 2 * a * b for b in others)
        g.append(2 * total + q + sum(others) + sum(others) + 2 * a)
    check(f, v, gradient=g)


@pytest.mark.skipif(not hasattr(itertools, "batched"), reason="itertools.batched came with Python 3.12")
def test_batched_makes_tuples_of_the_same_values():
    def f(v):
        return sum(math.prod(batch) for batch in itertools.batched(v, 2))

    check(f, [1.0, 2.0, 3.0], gradient=[2.0, 1.0, 1.0])


def test_zip_is_strict_when_asked_and_transposes():
    def f(rows):
        columns = list(zip(*rows, strict=True))
        with pytest.raises(ValueError):
            list(zip(columns, [1], strict=True))
        return sum(a * b for a, b in columns) + dict(zip("ab", rows[0], strict=True))["b"]

    check(f, [[1.0, 2.0], [3.0, 4.0]], gradient=[[3.0, 5.0], [1.0, 2.0]])


def test_enumerate_and_range_give_integers_beside_active_values():
    def f(v):
        return sum(i * a**i for i, a in enumerate(v, 1)) + sum(v[i] for i in range(len(v) - 1, -1, -2))

    a, b, c = v = [1.5, 2.0, 3.0]
    check(f, v, gradient=[1 + 1, 4 * b, 9 * c * c + 1])


def test_map_over_several_iterables_calls_python_c_and_method_functions():
    def f(v, w):
        a = sum(map(lambda p, q: p * q * q, v, w))
        b = sum(map(math.sin, v))
        c = sum(map(float.__mul__, v, w))
        d = sum(map(v[0].__add__, w))
        e = list(map(functools.partial(max, 2.5), v))
        return a + b + c + d + sum(e)

    v, w = [1.0, 3.0], [0.5, 2.0]
    check(
        f,
        v,
        w,
        gradient=(
            [0.25 + math.cos(1.0) + 0.5 + 2, 4.0 + math.cos(3.0) + 2.0 + 1],
            [2 * 0.5 + 1.0 + 1, 2 * 2.0 * 3.0 + 3.0 + 1],
        ),
    )


def test_filter_keeps_the_objects_it_lets_through():
    def f(v):
        kept = list(filter(lambda a: a * a > 2, v))
        true = list(filter(None, [*v, 0.0]))
        return sum(a * a for a in kept) + sum(true) * len(true)

    check(f, [1.0, -2.0, 3.0], gradient=[3.0, -4.0 + 3, 6.0 + 3])


def test_reversed_runs_over_lists_dicts_and_ranges():
    def f(v):
        d = {k: a * a for k, a in enumerate(v)}
        out = 0.0
        for a in reversed(v):
            out = out * 2.0 + a
        for k in reversed(d):
            out += (k + 1) * d[k]
        return out + next(reversed(d.values()))

    a, b, c = v = [1.0, 2.0, 3.0]
    # 4c + 2b + a ; a^2 + 2b^2 + 3c^2 + c^2
    check(f, v, gradient=[1 + 2 * a, 2 + 4 * b, 4 + 8 * c])


def test_sorted_with_a_key_calls_back_and_moves_the_objects():
    def f(v):
        keys = []

        def key(a):
            keys.append((a - 2.0) ** 2)
            return keys[-1]

        nearest = sorted(v, key=key)
        tail = sorted(v, key=lambda a: (-a, "x"), reverse=True)
        by_name = sorted([("b", v[0]), ("a", v[1])], key=operator.itemgetter(0))
        return nearest[0] * 100 + sum(keys) + tail[0] * 10 + by_name[0][1]

    a, b, c = v = [4.0, 2.5, 1.0]
    # nearest: b ; tail[0] = smallest = c ; by_name: b
    check(f, v, gradient=[2 * (a - 2), 100 + 2 * (b - 2) + 1, 2 * (c - 2) + 10])


def test_min_and_max_with_key_default_and_several_arguments():
    def f(v):
        far = max(v, key=lambda a: (a - 1.0) ** 2)
        near = min(*v, key=lambda a: abs(a - 1.0))
        none = max([], default=v[0] * 2.0)
        pair = max((a * a, i) for i, a in enumerate(v))
        clipped = max(0.0, min(1.0, v[1]))
        return far + 10 * near + 100 * none + 1000 * pair[0] + 10000 * clipped

    # v = [3, 0.5, -4]: far -4 ; near 0.5 ; pair 16 ; clipped 0.5
    check(f, [3.0, 0.5, -4.0], gradient=[200.0, 10.0 + 10000.0, 1 - 8000.0])


def test_ties_of_max_and_min_go_to_the_one_that_is_returned():
    g = plaingrad.grad(lambda v: max(v) * 2.0 + min(v) * 3.0 + max(v[1], v[0]))([1.0, 1.0, 1.0])
    assert g == [5.0, 1.0, 0.0]


def test_sum_of_numbers_arrays_lists_and_generators_with_a_start():
    def f(x, a):
        numbers = sum([x, x * x, 2, 3.5])
        arrays = sum([a, a * x, a], np.zeros(2))
        lists = sum([[x], [x, x]], [])
        tuples = sum(((x, 1.0), (x,)), ())
        one = sum([x])
        return numbers + float(arrays.sum()) + len(lists) * lists[2] + tuples[2] + one + sum((), x)

    x, a = 1.5, np.array([2.0, -1.0])
    check(f, x, a, gradient=(1 + 2 * x + a.sum() + 3 + 1 + 1 + 1, np.full(2, 2 + x)))


def test_sums_of_floats_use_the_same_rounding_as_a_plain_call():
    v = [0.1] * 10 + [1e16, 1.0, -1e16]
    check(lambda u: sum(u) + sum(a * 0.1 for a in u), v, gradient=[1.1] * 13)


def test_math_fsum_prod_sumprod_and_dist_take_iterables():
    def f(v, w):
        return math.fsum(v) * math.prod(w, start=v[0]) + math.dist(v, w) + math.hypot(*v)

    v, w = [1.0, 2.0], [4.0, 6.0]
    p, s, h = 24.0, 3.0, math.hypot(1.0, 2.0)
    check(
        f,
        v,
        w,
        gradient=(
            [p * 1.0 + s * 24.0 - 3 / 5 + 1 / h, p * 1.0 - 4 / 5 + 2 / h],
            [s * 6.0 + 3 / 5, s * 4.0 + 4 / 5],
        ),
    )


def test_any_and_all_stop_early_and_leave_the_walrus_value():
    def f(v):
        seen = []
        if any((hit := a * a) > 3.0 for a in v):
            seen.append(hit)
        if not all((miss := a * 2.0) < 3.0 for a in v):
            seen.append(miss)
        assert all(v) and any(v)
        return sum(seen) + hit

    # v = [1, 2, 3]: hit = 4 from v1 ; miss = 4 from v1
    check(f, [1.0, 2.0, 3.0], gradient=[0.0, 8.0 + 2.0, 0.0])


def test_iter_with_a_sentinel_and_next_with_a_default():
    def f(x):
        stack = [x * x, 0.0, x]
        popped = list(iter(stack.pop, 0.0))
        it = iter([x * 3.0])
        a, b = next(it), next(it, x * 5.0)
        calls = []
        halves = iter(lambda: calls.append(1) or x / len(calls), x / 3)
        return sum(popped) + a + b + stack[0] + sum(halves)

    # popped [x] ; 3x ; 5x ; x^2 ; x + x/2
    check(f, 1.5, gradient=1 + 8 + 3.0 + 1.5)


def test_dict_views_and_their_iterators():
    def f(x, y):
        d = {"a": x, "b": y, 3: x * y}
        total = 0.0
        for k, v in d.items():
            total += v * (k if isinstance(k, int) else 2.0)
        it = iter(d.values())
        next(it)
        return total + next(it) + [*d.values()][2] + max(d.values()) + (x in d.values())

    # 2x + 2y + 3xy + y + xy + xy
    x, y = 2.0, 3.0
    check(f, x, y, gradient=(2 + 5 * y, 3 + 5 * x))


def test_iterators_are_advanced_by_hand_and_shared():
    def f(v):
        it = iter(v)
        pairs = list(zip(it, it, strict=False))
        second = iter(v)
        first = next(second)
        rest = [a * first for a in second]
        return sum(a * b for a, b in pairs) + sum(rest)

    a, b, c, d = v = [1.0, 2.0, 3.0, 4.0]
    check(f, v, gradient=[b + b + c + d, a + a, d + a, c + a])


def test_iterating_over_arrays_gives_elements_and_rows():
    def f(m):
        total = 0.0
        for row in m:
            a, b = row
            total += a * b
        for v in m[0]:
            total += v * v
        for i, column in enumerate(m.T):
            total += float(column.sum()) * i
        return total + sum(map(sum, m)) + max(m[1]) + float(sum(a @ b for a, b in zip(m, m, strict=True)))

    m = np.array([[1.0, 2.0], [3.0, 4.0]])
    check(
        f,
        m,
        gradient=np.array([[2.0 + 2 + 1 + 2, 1.0 + 4 + 1 + 1 + 4], [4.0 + 1 + 6, 3.0 + 1 + 1 + 1 + 8]]),
    )


@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (lambda x: sum(map(float.__mul__, [x], [0.5])), 0.5),
        (lambda x: sum(map(np.sin, [x, 2.0 * x])), math.cos(1.5) + 2 * math.cos(3.0)),
        (lambda x: functools.reduce(np.add, [x, x, 1.0]), 2.0),
        (lambda x: functools.reduce(float.__mul__, [x, x, x]), 3 * 1.5**2),
        (lambda x: next(itertools.starmap(float.__pow__, [(x, 3.0)])), 3 * 1.5**2),
        (lambda x: list(itertools.accumulate([x, x], np.multiply))[1], 3.0),
        (lambda x: collections.defaultdict(functools.partial(float.__mul__, x, 4.0))["new"], 4.0),
        (lambda x: collections.defaultdict(x.__neg__)["new"], -1.0),
        (lambda x: next(iter(functools.partial(operator.mul, x, x), None)), 3.0),
        (lambda x: sum(map(np.ndarray.sum, [np.array([x, x])])), 2.0),
        (lambda x: sum(map(list.pop, [[x], [x * x]])), 4.0),
        (lambda x: sum(map([x, x * x].__getitem__, [1, 0])), 4.0),
        (lambda x: sum(map({"a": x}.get, "ab", [0.0, x * x])), 4.0),
        (lambda x: sum(map(complex(x, 1.0).__mul__, [2.0])).real, 2.0),
        (lambda x: sorted([x, -x], key=float.__abs__)[0] * 2.0, 2.0),
        (lambda x: max([x, 1.0], key=np.negative), 0.0),
        (lambda x: sum(map(functools.partial(np.power, x), [2.0])), 3.0),
        (lambda x: sum(map(operator.itemgetter(0), [[x * x]])), 3.0),
        (lambda x: sum(map(float, [x, np.float64(x)])), 2.0),
    ],
)
def test_c_callables_of_every_kind_are_callbacks(f, slope):
    check_or_refused(f, 1.5, gradient=slope)


world = {"v": 1.0}


def squares_of_the_world():
    while True:
        yield world["v"] * world["v"]


@pytest.mark.parametrize(
    "make",
    [
        squares_of_the_world,
        lambda: (world["v"] * k for k in itertools.count(1)),
        lambda: map(lambda k: world["v"] * k, itertools.count(1)),
        lambda: itertools.starmap(lambda a, b: world["v"] * a * b, itertools.repeat((2.0, 3.0))),
        lambda: itertools.accumulate(itertools.repeat(1.0), lambda a, b: a + b * world["v"]),
        lambda: iter(lambda: world["v"] * 5.0, None),
        lambda: itertools.islice(squares_of_the_world(), 100),
        lambda: zip(squares_of_the_world(), itertools.count()),
        lambda: itertools.chain.from_iterable([world["v"] * 7.0] for _ in range(100)),
        lambda: filter(lambda a: a or True, squares_of_the_world()),
    ],
    ids="generator genexp map starmap accumulate iter islice zip chain filter".split(),
)
@pytest.mark.parametrize(
    "step",
    [
        lambda it: next(it),
        lambda it: next(iter(it)),
        lambda it: [a for a, _ in zip(it, range(2))][1],
        lambda it: list(itertools.islice(it, 2))[1],
        lambda it: it.__next__(),
    ],
    ids="next iter zip islice dunder".split(),
)
def test_iterators_made_outside_that_see_an_active_value_are_never_silently_wrong(make, step):
    def value(it):
        y = step(it)
        return y[0] if isinstance(y, tuple) else y

    def f(x):
        world["v"] = x
        return value(source)

    def at(x):
        nonlocal source
        world["v"] = 1.0
        source = make()
        return f(x)

    # all of them are polynomials of degree two at most: differences are exact but for rounding
    source = None
    slope = (at(3.5) - at(2.5)) / 1.0
    world["v"] = 1.0
    source = make()
    try:
        g = plaingrad.grad(f)(3.0)
    except plaingrad.PlaingradError:
        return
    finally:
        world["v"] = 1.0
    assert g == pytest.approx(slope, rel=1e-12)


def test_a_generator_whose_world_becomes_active_after_the_loop_began_is_never_silently_wrong():
    def f(x):
        total = 0.0
        for k, v in zip(range(3), source):
            total = total + v
            world["v"] = x * (k + 1)
        return total

    # 1 + x^2 + (2x)^2
    world["v"] = 1.0
    source = squares_of_the_world()
    try:
        g = plaingrad.grad(f)(3.0)
    except plaingrad.PlaingradError:
        return
    finally:
        world["v"] = 1.0
    assert g == 2 * 3.0 + 8 * 3.0


def test_a_callback_that_mutates_while_c_code_iterates():
    def f(v):
        out = []

        def step(a):
            out.append(a * len(out))
            return a * a

        total = sum(map(step, v))
        pairs = sorted(v, key=lambda a: out.append(a) or -a)
        return total + sum(out) + pairs[0] * 3

    # squares ; 0*a + 1*b + 2*c ; a + b + c ; 3 max
    a, b, c = v = [1.0, 3.0, 2.0]
    check(f, v, gradient=[2 * a + 1, 2 * b + 1 + 1 + 3, 2 * c + 2 + 1])


def test_a_sieve_of_lazy_iterators_over_active_numbers():
    def f(x):
        values = (x * k for k in itertools.count(1))
        odd = itertools.compress(values, itertools.cycle([1, 0]))
        shifted = map(operator.add, odd, itertools.repeat(1.0))
        small = itertools.takewhile(lambda v: v < 20.0, shifted)
        return functools.reduce(operator.mul, small)

    # x = 3: 3x(1,3,5,7...)+1: 4, 10, 16, 22: three factors
    x = 3.0
    p = [x + 1, 3 * x + 1, 5 * x + 1]
    check(f, x, gradient=p[1] * p[2] + 3 * p[0] * p[2] + 5 * p[0] * p[1])


def test_hooks_given_to_parsers_in_c_are_exact_or_refused():
    def by_object_hook(x):
        return json.loads('[{"a": 1}, {"b": 2, "c": 3}]', object_hook=lambda d: x * len(d))[1]

    def by_parse_float(x):
        return json.loads("[1.5, 2.5]", parse_float=lambda text: x * x)[1]

    def by_expat(x):
        total = []
        parser = xml.parsers.expat.ParserCreate()
        parser.StartElementHandler = lambda name, attributes: total.append(x * len(name))
        parser.Parse("<one><two/></one>", True)
        return sum(total)

    check_or_refused(by_object_hook, 1.5, gradient=2.0)
    check_or_refused(by_parse_float, 1.5, gradient=3.0)
    check_or_refused(by_expat, 1.5, gradient=6.0)


def test_nested_gradients_through_iteration_tools():
    def f(v):
        return functools.reduce(operator.mul, itertools.accumulate(v, operator.mul))

    # x * x^2 * x^3 when v = [x, x, x]
    second = plaingrad.grad(plaingrad.grad(lambda x: f([x, x, x])))(1.2)
    assert second == pytest.approx(30 * 1.2**4, rel=1e-13)


def test_a_callback_given_to_unknown_c_code_may_not_return_an_active_value_silently():
    def f(x):
        table = {"a": 1.0}
        return "%(k)s" % {"k": table.get("a")} and functools.reduce(lambda a, b: a * b * x, [1.0, 2.0, 3.0])

    check(f, 1.5, gradient=12 * 1.5)


def test_functions_that_only_look_choose_and_map():
    def f(x):
        chosen = sum(filter(np.isscalar, [x, 2.0 * x])) + sum(itertools.takewhile(np.isfinite, [x * x]))
        looked = sum(map(np.isscalar, [x, [x]])) + len(set(map(np.shape, [x, x])))
        return (chosen + sum(itertools.filterfalse(np.isnan, [x]))) * (all(map(np.isscalar, [x, x])) + looked)

    x = 1.3
    assert f(x) == pytest.approx((4.0 * x + x * x) * 3.0)
    assert plaingrad.grad(f)(x) == pytest.approx((4.0 + 2.0 * x) * 3.0)
    assert plaingrad.jvp(f, (x,), (1.0,))[1] == pytest.approx((4.0 + 2.0 * x) * 3.0)
    assert plaingrad.grad(plaingrad.grad(f))(x) == pytest.approx(6.0)
