"""Values that travel through lists, dicts, sets, deques, heaps and comprehensions keep their derivative."""

import array
import bisect
import ctypes
import heapq
import math
import struct
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

import plaingrad
from cases import Fields, check, check_or_refused

Point = namedtuple("Point", "x y")


def test_a_list_with_the_same_constant_twice_has_two_leaves():
    check(lambda v: v[0] * 3.0 + v[1] * v[1], [1.0, 1.0], gradient=[3.0, 2.0])


def test_one_float_object_at_several_places_has_a_derivative_at_each():
    a = 2.0
    check(
        lambda u, v, w: u * v[0] * v[1] * w["k"],
        a,
        (a, a),
        {"k": a},
        gradient=(8.0, (8.0, 8.0), {"k": 8.0}),
    )


def test_nested_containers_are_mirrored_by_their_gradient():
    model = {"layers": [{"w": [0.5, -0.5], "b": 0.1}, {"w": [2.0], "b": (3.0,)}], "name": "net", "unused": 4.0}

    def f(m):
        first, second = m["layers"]
        hidden = math.tanh(first["w"][0] + 2 * first["w"][1] + first["b"])
        return second["w"][0] * hidden + second["b"][0] ** 2

    hidden = math.tanh(0.5 - 1.0 + 0.1)
    d = 2.0 * (1 - hidden**2)
    check(
        f,
        model,
        gradient={
            "layers": [{"w": [d, 2 * d], "b": d}, {"w": [hidden], "b": (6.0,)}],
            "name": None,
            "unused": 0.0,
        },
    )


def test_list_methods_move_values_without_losing_them():
    def f(x, y):
        v = [x]
        v.append(y)
        v.extend([x * y, 1.0])
        v.insert(0, y * y)
        v.remove(1.0)
        v.reverse()  # [xy, y, x, yy]
        last = v.pop()
        v2 = v.copy()
        v.clear()
        return last + 2 * v2[0] + 3 * v2.pop(1) + 5 * v2[v2.index(x)] + v2.count(x)

    x, y = 2.0, 3.0
    check(f, x, y, gradient=(2 * y + 5, 2 * y + 2 * x + 3))


def test_slices_are_read_assigned_and_deleted():
    def f(v):
        w = v[:]
        w[1:3] = [v[0] * v[3], v[1], v[2]]  # v0, v0 v3, v1, v2, v3
        del w[0]
        w[::2] = w[::-2]  # positions 0 and 2 swap places
        return w[0] + 10 * w[1] + 100 * w[2] + 1000 * w[-1]

    # after del: [v0 v3, v1, v2, v3]; w[::-2] is [v3, v1]; so [v3, v1, v1, v3]
    check(f, [2.0, 3.0, 5.0, 7.0], gradient=[0.0, 110.0, 0.0, 1001.0])


def test_list_repetition_and_concatenation_share_one_value():
    def f(x):
        v = [x * x] * 3 + [x] + 2 * [1.0]
        v += (x, x)
        v *= 2
        return sum(v)

    x = 1.5
    check(f, x, gradient=2 * (3 * 2 * x + 3))


def test_a_matrix_as_nested_lists_is_multiplied_by_comprehensions():
    def f(a, b):
        c = [[sum(u * v for u, v in zip(row, col, strict=True)) for col in zip(*b, strict=True)] for row in a]
        return sum(c[i][i] for i in range(2))

    a, b = [[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]
    check(f, a, b, gradient=([[5.0, 7.0], [6.0, 8.0]], [[1.0, 3.0], [2.0, 4.0]]))


def test_star_unpacking_spreads_values_over_names_calls_and_displays():
    def f(v):
        first, *middle, last = v
        (a, b), *_ = [(first, last), middle]
        packed = [*middle, *(a, b), *{"k": 1}]
        packed.pop()

        def g(p, *args, q, **kw):
            return p * args[0] + q * kw["r"] + len(args)

        return g(*packed, **{"q": last}, **dict(r=first)) + packed[-1]

    # packed = [v1, v2, v0, v3]: g = v1*v2 + v3*v0 + 3; plus v3
    check(f, [2.0, 3.0, 5.0, 7.0], gradient=[7.0, 5.0, 3.0, 3.0])


def test_swapping_by_tuple_assignment_keeps_each_derivative_with_its_value():
    def f(a, b, c):
        a, b, c = b * 1.0, c, a
        a, b = b, a
        return a + 10 * b + 100 * c

    check(f, 2.0, 3.0, 4.0, gradient=(100.0, 10.0, 1.0))


def test_dict_methods_move_values():
    def f(x, y):
        d = {"a": x, **{"b": y}}
        d.setdefault("c", x * y)
        d.setdefault("a", 99.0)
        d.update(e=y * y, a=d["a"] * 2)
        d |= {"g": d.get("nothing", x)}
        popped = d.pop("b")
        key, value = (d | {"z": x}).popitem()
        both = dict(zip(d, d.values(), strict=True))
        fresh = dict.fromkeys(["p", "q"], y)
        assert key == "z"
        return sum(both.values()) + popped * value + fresh["p"] * fresh["q"] + d.get("zz", 0.0)

    # values: a=2x, c=xy, e=yy, g=x ; popped*value = y*x ; fresh = y*y
    x, y = 2.0, 3.0
    check(f, x, y, gradient=(3 + 2 * y, 2 * x + 4 * y))


def test_active_numbers_can_be_dict_keys():
    def f(x, y):
        d = {x: y * 2.0, y: x * 3.0}
        d[x * y] = 1.0
        return sum(k * v for k, v in d.items()) + d[x]

    # x*2y + y*3x + xy + 2y
    x, y = 2.0, 3.0
    check(f, x, y, gradient=(6 * y, 6 * x + 2))


def test_reductions_over_a_dict_run_over_its_active_keys():
    def f(x, y):
        d = {x * y: 1, y: 2}
        return sum(d) + 10 * math.fsum(d) + 100 * math.prod(d) + 1000 * max(d) + 10000 * sum(k * v for k, v in d.items())

    x, y = 2.0, 3.0
    check(f, x, y, gradient=(11 * y + 100 * y * y + 11000 * y, 11 * (x + 1) + 200 * x * y + 11000 * x + 20000))


def test_an_overwritten_dict_key_keeps_the_first_key_object_and_the_last_value():
    def f(x, y):
        d = {x: "first"}
        d[y] = "second"  # y == x: the key object stays x
        (key,) = d
        return key * key

    assert plaingrad.grad(f, (0, 1))(3.0, 3.0) == (6.0, 0.0)


def test_a_set_keeps_the_first_of_two_equal_numbers():
    def f(x, y):
        s = {x, y}
        (only,) = s
        return only * only

    assert plaingrad.grad(f, (0, 1))(3.0, 3.0) == (6.0, 0.0)


def test_sets_of_tuples_carry_values():
    def f(x, y):
        edges = {("a", "b", x), ("b", "c", x * y), ("a", "b", x)}
        more = frozenset({("c", "d", y)})
        union = edges | more
        union.add(("d", "e", y * y))
        union.discard(("c", "d", y))
        return sum(w for _, _, w in sorted(union)) * len(edges - more)

    x, y = 2.0, 3.0
    check(f, x, y, gradient=(2 * (1 + y), 2 * (x + 2 * y)))


def test_set_comprehensions_and_set_update_take_any_iterable():
    def f(v):
        s = {a * a for a in v}
        s.update(a for a in v)
        s |= {v[0] + 0.25}
        return sum(s)

    check(f, [1.5, 2.5], gradient=[2 * 1.5 + 2.0, 2 * 2.5 + 1.0])


def test_a_bounded_deque_forgets_the_oldest():
    def moving(v):
        window = deque(maxlen=3)
        out = 0.0
        for a in v:
            window.append(a)
            out += sum(window) ** 2 / len(window)
        return out

    v = [1.0, -2.0, 3.0, 0.5]
    w1, w2, w3, w4 = [1.0], [1.0, -2.0], [1.0, -2.0, 3.0], [-2.0, 3.0, 0.5]
    d1, d2, d3, d4 = (2 * sum(w) / len(w) for w in (w1, w2, w3, w4))
    check(moving, v, gradient=[d1 + d2 + d3, d2 + d3 + d4, d3 + d4, d4])


def test_deques_rotate_extend_left_and_pop_at_both_ends():
    def f(a, b, c):
        d = deque([a, b])
        d.extendleft([c, a * b])  # ab, c, a, b
        d.rotate(1)  # b, ab, c, a
        d.appendleft(2.0)
        left = d.popleft()
        first, second = d.popleft(), d.pop()  # b, a
        d.insert(1, c * c)  # ab, cc, c
        return left * first + 3 * second + d[1] * d[-1] + d[0]

    a, b, c = 2.0, 3.0, 5.0
    check(f, a, b, c, gradient=(3 + b, 2 + a, 3 * c * c))


def test_namedtuples_are_rebuilt_and_their_gradient_is_one():
    def f(p):
        q = p._replace(x=p.x * p.y)
        d = q._asdict()
        r = Point._make([d["y"], q.x])
        s = Point(*r)
        x, y = s
        return x * 2 + y * y + s[0]

    # r = (y, xy): 2y + x^2 y^2 + y
    p = Point(2.0, 3.0)
    check(f, p, gradient=Point(2 * 2.0 * 9.0, 3 + 2 * 4.0 * 3.0))


def test_a_defaultdict_groups_active_values():
    def f(v):
        groups = defaultdict(list)
        for i, a in enumerate(v):
            groups[i % 2].append(a)
        sums = defaultdict(float)
        for k, group in groups.items():
            for a in group:
                sums[k] += a * a
        missing = defaultdict(lambda: v[0] * 10)
        return sums[0] * sums[1] + sums["none"] + missing["any"]

    v = [1.0, 2.0, 3.0, 4.0]
    s0, s1 = 10.0, 20.0
    check(f, v, gradient=[2 * 1.0 * s1 + 10, 2 * 2.0 * s0, 2 * 3.0 * s1, 2 * 4.0 * s0])


def test_counters_hold_active_weights():
    def f(x, y):
        c = Counter({"a": x, "b": y})
        c["a"] += y
        c.update({"b": x * x})
        c.subtract({"a": 0.5})
        (top, weight), *_ = c.most_common()
        d = c + Counter({"a": 1.0, "c": y})
        return weight * (top == "b") + d["a"] * d["b"] + d["c"] + c["missing"]

    # a = x+y-.5, b = y + xx ; d a = x+y+.5 ; d b = same ; d c = y
    x, y = 2.0, 3.0
    a, b = x + y + 0.5, y + x * x
    check(f, x, y, gradient=(2 * x + b + a * 2 * x, 1 + b + a + 1))


def test_counter_total_and_set_like_operators_are_exact():
    def f(x, y):
        c = Counter(a=x, b=y)
        d = Counter(a=y, b=x)
        return (c & d)["a"] * 3 + (c | d)["a"] * 5 + (c - d)["b"] * 7 + c.total() * 11

    # x=2, y=3: & a = x ; | a = y ; (c-d) b = y - x
    check(f, 2.0, 3.0, gradient=(3.0 - 7 + 11, 5.0 + 7 + 11))


def test_a_chainmap_reads_through_and_writes_to_its_front():
    def f(x, y):
        base = {"rate": x, "scale": y}
        cm = ChainMap({"rate": x * y}, base)
        child = cm.new_child({"extra": y})
        child["scale"] = child["rate"] * child["scale"]
        return child["scale"] + cm["scale"] + child["extra"] + base["rate"] + dict(child)["rate"]

    # rate = xy ; child scale = x y^2 ; + y + y + x + xy
    x, y = 2.0, 3.0
    check(f, x, y, gradient=(y * y + 1 + y, 2 * x * y + 2 + x))


def test_an_ordereddict_reorders_without_losing_values():
    def f(x, y):
        od = OrderedDict([("a", x), ("b", y), ("c", x * y)])
        od.move_to_end("a")
        od["d"] = y * y
        first = od.popitem(last=False)[1]  # b: y
        s = 0.0
        for k, v in enumerate(reversed(od.values()), start=1):  # d, a, c
            s += k * v
        return s + first

    x, y = 2.0, 3.0
    check(f, x, y, gradient=(2 + 3 * y, 2 * y + 3 * x + 1))


def test_user_containers_written_in_python_behave_like_their_data():
    def f(x, y):
        ud = UserDict({"a": x})
        ud["b"] = y * ud["a"]
        ul = UserList([x, y])
        ul.append(ud["b"])
        ul[0] = ul[0] * 2.0
        return sum(ul) + ud.get("a") + (ul + [x])[-1]

    check(f, 2.0, 3.0, gradient=(2 + 3.0 + 2, 1 + 2.0))


def test_a_heap_of_active_priorities_pops_in_order_and_keeps_identity():
    def f(v):
        heap = []
        for i, a in enumerate(v):
            heapq.heappush(heap, (a * a, i, a))
        out, weight = 0.0, 1.0
        while heap:
            square, _, a = heapq.heappop(heap)
            out += weight * (square + a)
            weight *= 10.0
        return out

    v = [3.0, -1.0, 2.0]
    check(f, v, gradient=[100 * (6.0 + 1), -2.0 + 1, 10 * (4.0 + 1)])


def test_heapq_helpers_only_move_values():
    def f(v):
        h = list(v)
        heapq.heapify(h)
        smallest = heapq.heapreplace(h, v[0] * 100.0)
        next_one = heapq.heappushpop(h, 0.25)  # 0.25 comes straight back
        large = heapq.nlargest(2, v)
        small = heapq.nsmallest(2, v, key=lambda a: -a)
        merged = list(heapq.merge(sorted(v), [v[1] + 0.5]))
        return smallest + next_one + large[0] * large[1] + small[0] + merged[-1] * 7 + max(h)

    # v = [4, 1, 3]: smallest = v1 ; large = v0 v2 ; small0 = v0 ; merged: 1, 1.5, 3, 4 -> v0 ; max(h) = 100 v0
    check(f, [4.0, 1.0, 3.0], gradient=[3.0 + 1 + 7 + 100, 1.0, 4.0])


def test_bisect_finds_the_interval_and_interpolates_linearly():
    def interpolate(xs, ys, x):
        i = bisect.bisect_right(xs, x) - 1
        t = (x - xs[i]) / (xs[i + 1] - xs[i])
        return ys[i] * (1 - t) + ys[i + 1] * t

    xs, ys, x = [0.0, 1.0, 3.0, 4.0], [1.0, -1.0, 5.0, 2.0], 1.5
    t, h, dy = 0.25, 2.0, 6.0
    check(
        interpolate,
        xs,
        ys,
        x,
        gradient=([0.0, dy * (x - 3.0) / h**2, -dy * (x - 1.0) / h**2, 0.0], [0.0, 1 - t, t, 0.0], dy / h),
    )


def test_insort_with_a_key_keeps_the_values_it_inserts():
    def f(v):
        ordered = []
        for a in v:
            bisect.insort(ordered, (a, a * a), key=lambda pair: -pair[0])
        return sum(w * square for w, (_, square) in zip((1.0, 10.0, 100.0), ordered, strict=True))

    check(f, [2.0, 3.0, 1.0], gradient=[10 * 4.0, 6.0, 100 * 2.0])


def test_array_array_makes_new_numbers_and_is_refused():
    def f(x):
        a = array.array("d", [x, x * 2])
        return a[0] + a[1]

    with pytest.raises(plaingrad.MissingRuleError):
        plaingrad.grad(f)(3.0)


def test_writing_an_active_number_into_an_array_array_is_refused():
    buffer = array.array("d", [0.0, 0.0])

    def by_item(x):
        buffer[0] = x * 2
        return buffer[0]

    def by_append(x):
        buffer.append(x * 2)
        return buffer[-1]

    for f in (by_item, by_append):
        with pytest.raises(plaingrad.PlaingradError):
            plaingrad.grad(f)(3.0)


def test_numbers_stored_in_c_memory_are_refused():
    def scalar(x):
        return ctypes.c_double(x).value

    def vector(x):
        return (ctypes.c_double * 2)(x, x)[0]

    def item(x):
        a = (ctypes.c_double * 2)()
        a[0] = x * 2
        return a[0]

    def field(x):
        s = Pair()
        s.first = x
        return s.first

    def packed(x):
        return struct.unpack("d", struct.pack("d", x))[0]

    def viewed(x):
        m = memoryview(bytearray(8)).cast("d")
        m[0] = x
        return m[0]

    for f in (scalar, vector, item, field, packed, viewed):
        with pytest.raises(plaingrad.PlaingradError):
            plaingrad.grad(f)(3.0)


class Pair(ctypes.Structure):
    _fields_ = [("first", ctypes.c_double), ("second", ctypes.c_double)]


def test_an_array_array_of_constants_is_only_read():
    table = array.array("d", [1.0, 2.0, 4.0])
    check(lambda x: sum(c * x**k for k, c in enumerate(table)), 3.0, gradient=2.0 + 8.0 * 3.0)


def test_comprehensions_of_every_kind_with_conditions_and_nesting():
    def f(v):
        squares = [a * a for a in v if a > 0]
        table = {i: [a * b for b in v] for i, a in enumerate(v)}
        flat = [c for row in table.values() for c in row if c > 0]
        total = sum(c for c in flat)
        uniq = {round(a): a for a in v}
        return sum(squares) + total + uniq[2] * uniq[-1]

    # v = [2, -1]: squares: v0^2 ; positive products: v0^2, v1^2 ; v0*v1
    check(f, [2.0, -1.0], gradient=[4.0 + 4.0 - 1.0, -2.0 + 2.0])


def test_a_comprehension_shadows_its_outer_name_and_reads_the_enclosing_ones():
    def f(x, y):
        a = y * y
        inner = [a * x for a in (x, y)]
        pairs = [(lambda: a * b)() for b in (x, y)]
        return inner[0] + 2 * inner[1] + pairs[0] + 3 * pairs[1]

    # x^2 + 2xy + y^2 x + 3 y^3
    x, y = 2.0, 3.0
    check(f, x, y, gradient=(2 * x + 2 * y + y * y, 2 * x + 2 * x * y + 9 * y * y))


def test_tuples_compare_concatenate_and_hash_with_active_members():
    def f(x, y):
        t = (x, y) + (x * y,)
        cache = {t: t[2], (x,): x}
        best = max([(x, "x"), (y, "y")])
        return cache[x, y, x * y] + cache[(x,)] * 2 + best[0] * 3 + (t * 2)[4]

    x, y = 2.0, 3.0
    check(f, x, y, gradient=(y + 2, x + 3 + 1))


def test_a_linked_list_and_a_graph_of_dicts_are_walked():
    def f(v):
        chain = None
        for a in v:
            chain = (a, chain)
        s, k = 0.0, 1.0
        while chain is not None:
            a, chain = chain
            s, k = s + k * a * a, k * 10
        return s

    check(f, [1.0, 2.0, 3.0], gradient=[200.0, 40.0, 6.0])


def test_dijkstra_gives_one_to_the_edges_of_the_shortest_path():
    def shortest(graph):
        distance, heap = {}, [(0.0, "s")]
        while heap:
            d, node = heapq.heappop(heap)
            if node in distance:
                continue
            distance[node] = d
            for to, w in graph.get(node, {}).items():
                heapq.heappush(heap, (d + w, to))
        return distance["t"]

    graph = {"s": {"a": 1.0, "b": 4.0}, "a": {"b": 1.5, "t": 7.0}, "b": {"t": 2.0}}
    check(
        shortest,
        graph,
        gradient={"s": {"a": 1.0, "b": 0.0}, "a": {"b": 1.0, "t": 0.0}, "b": {"t": 1.0}},
    )


def test_memoised_dynamic_programming_in_a_dict_reuses_active_values():
    def paths(w):
        memo = {}

        def best(i, j):
            if (i, j) not in memo:
                if i == j == 0:
                    memo[i, j] = w[0][0]
                else:
                    options = [best(*p) for p in ((i - 1, j), (i, j - 1)) if min(p) >= 0]
                    memo[i, j] = min(options) + w[i][j]
            return memo[i, j]

        return best(2, 2)

    w = [[1.0, 3.0, 1.0], [1.0, 5.0, 1.0], [4.0, 2.0, 1.0]]
    check(paths, w, gradient=[[1.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])


def test_a_cyclic_container_inside_the_function_does_no_harm():
    def f(x):
        ring = [x * 2.0]
        ring.append(ring)
        d = {"me": None, "v": x * x}
        d["me"] = d
        return ring[1][1][0] + d["me"]["me"]["v"]

    check(f, 3.0, gradient=2 + 6.0)


def test_simple_namespaces_and_mapping_proxies_as_arguments_and_inside():
    def f(ns):
        view = MappingProxyType({"k": ns.a * ns.b})
        ns2 = SimpleNamespace(**vars(ns), c=view["k"])
        return ns2.a + ns2.c

    check(f, SimpleNamespace(a=2.0, b=3.0), gradient=Fields(a=1 + 3.0, b=2.0))


def test_an_object_array_is_a_container_of_numbers():
    def f(x, y):
        a = np.array([x, y, x * y], dtype=object)
        b = a * 2 + a[0]
        b[1] = b[1] * y
        return b.sum() + b[2]

    # b = [3x, 2y + x, 2xy + x] -> b1 = (2y+x) y ; sum + b2 = 3x + (2y+x)y + 2(2xy+x)
    x, y = 2.0, 3.0
    check_or_refused(f, x, y, gradient=(3 + y + 4 * y + 2, 4 * y + x + 4 * x))


def test_lists_made_from_arrays_hold_the_elements_derivative():
    def f(a):
        values = list(a)
        nested = a.reshape(2, 2).tolist()
        first, *rest = a
        return values[0] * values[1] + nested[1][0] * 3 + first + sum(rest) + float(a[3]) * a[3].item()

    a = np.array([2.0, 3.0, 5.0, 7.0])
    check(f, a, gradient=np.array([3.0 + 1, 2.0 + 1, 3.0 + 1, 1 + 14.0]))


def test_arrays_inside_containers_inside_containers():
    def f(p):
        (w, b), extra = p["net"], p["extra"]
        return float(np.sum(w @ np.array([1.0, 2.0]) + b)) * extra[0]

    p = {"net": (np.ones((2, 2)), np.zeros(2)), "extra": [2.0, "text"]}
    check(
        f,
        p,
        gradient={"net": (np.array([[2.0, 4.0], [2.0, 4.0]]), np.full(2, 2.0)), "extra": [6.0, None]},
    )


def test_the_argument_list_holds_its_own_objects_again_after_the_call():
    a, b = 2.0, 3.0
    items = [a, b]
    inner = {"k": (a, [b])}
    plaingrad.grad(lambda v, d: v[0] * v[1] * d["k"][1][0], (0, 1))(items, inner)
    assert items[0] is a and items[1] is b
    assert inner["k"][0] is a and inner["k"][1][0] is b


def test_the_argument_list_holds_its_own_objects_again_after_an_exception():
    a, b = 2.0, 3.0
    items = [a, [b]]

    def f(v):
        v[1][0] * v[0]
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        plaingrad.grad(f)(items)
    assert items[0] is a and items[1][0] is b


def test_an_argument_stored_elsewhere_is_the_callers_object_afterwards():
    kept = []

    def f(v):
        kept.append(v[0])
        v.append(v[0])
        return v[0] * v[-1]

    a = 2.5
    items = [a]
    assert plaingrad.grad(f)(items) == [5.0]
    assert items == [2.5, 2.5] and items[1] is items[0] is a
    assert kept == [2.5]  # beyond what is returned, the fresh copy of the number may stay


def test_complex_numbers_in_containers():
    def f(zs):
        return abs(sum(z * w for z, w in zip(zs, reversed(zs), strict=True))) ** 2

    a, b = 1.0 + 2.0j, 0.5 - 1.0j
    s = 2 * a * b
    check(f, [a, b], gradient=[2 * s * (2 * b).conjugate(), 2 * s * (2 * a).conjugate()])


def test_numpy_scalars_of_several_widths_share_a_tuple():
    def f(t):
        a, b = t
        return float(a) * float(b) + float(a)

    check(f, (np.float64(2.0), np.float32(3.0)), gradient=(4.0, np.float32(2.0)), rtol=1e-6)
