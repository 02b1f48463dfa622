"""Hazard 12: a cache that the program has filled is the program's: what it holds, and what it counts, stays as it is."""

import collections
import dataclasses
import functools
import math
import threading

import numpy as np
import pytest

import plaingrad

MODES = [plaingrad.grad, plaingrad.derivative]


@pytest.fixture(params=MODES, ids=["reverse", "forward"])
def slope(request):
    """The derivative of a function of one number, by either mode."""
    return request.param


class Settings:
    def __init__(self):
        self.scale = 3.0
        self.log = []


def test_a_singleton_is_the_object_that_it_was(slope):
    made = []

    @functools.lru_cache
    def get_settings():
        made.append(1)
        return Settings()

    settings = get_settings()
    settings.scale = 5.0

    def f(x):
        assert get_settings() is settings
        return get_settings().scale * x * x

    before = get_settings.cache_info()
    assert slope(f)(2.0) == 20.0
    assert len(made) == 1
    after = get_settings.cache_info()
    assert (after.hits, after.misses, after.currsize) == (before.hits + 2, before.misses, before.currsize)


def test_a_singleton_of_every_kind_of_callable(slope):
    class Registry:
        def __init__(self, name="r"):
            self.name = name
            self.items = []

        def __call__(self, k):
            return [k]

        def method(self, k):
            return [k]

        @classmethod
        def of_class(cls, k):
            return [k]

    def two(j, k):
        return [j, k]

    cached = [
        (functools.lru_cache(Registry), ("a",)),
        (functools.lru_cache(Registry("b")), (1,)),
        (functools.lru_cache(Registry("c").method), (1,)),
        (functools.lru_cache(Registry.of_class), (1,)),
        (functools.lru_cache(functools.partial(two, 1)), (2,)),
        (functools.lru_cache(lambda k: {"k": k}), (2,)),
        (functools.cache(functools.cache(lambda k: [k])), (2,)),
        (functools.lru_cache(dict), ((("a", 1.0),),)),
        (functools.lru_cache(math.exp), (1.5,)),
    ]
    for f, args in cached:
        before = f(*args)
        assert slope(lambda x, f=f, args=args, before=before: x * (f(*args) is before))(1.5) == 1.0
        f.cache_clear()
        slope(lambda x, f=f, args=args: (f(*args), x)[1])(1.5)  # a miss inside fills it
        kept = f.cache_info()
        assert (kept.misses, kept.currsize) == (1, 1)
        assert f(*args) is f(*args)


def test_a_miss_inside_leaves_the_cache_as_a_plain_call_does(slope):
    def program(table):
        def f(x):
            y = 0.0
            for k in (1, 2, 1, 3, 2, 1.0, 4, 1):
                y = y + table(k) * x
            try:
                table(-1)
            except ValueError:
                y = y + x
            return y + table(2, scale=2.0) * x

        return f

    for maxsize, typed in [(None, False), (None, True), (2, False), (3, True), (0, False), (1, False)]:
        states = []
        for differentiate in (False, True):
            calls = []

            @functools.lru_cache(maxsize, typed)
            def table(k, scale=1.0, calls=calls):
                calls.append(k)
                return math.sqrt(k) * scale

            table(3)
            f = program(table)
            y = slope(f)(1.5) if differentiate else f(1.0)  # f is linear
            info = table.cache_info()
            order = [table(k) and table.cache_info().misses for k in (3, 2, 1, 4)]
            states.append((round(y, 9), info, list(calls), order))
        assert states[0] == states[1], (maxsize, typed)


def test_a_miss_inside_that_reads_active_state_is_followed_and_leaves_plain_numbers(slope):
    box = [0.0]

    @functools.cache
    def doubled(n):
        return box[0] * n

    def f(x):
        box[0] = x * x
        return doubled(2.0) * doubled(2.0)

    assert slope(f)(1.5) == 16 * 1.5**3
    info = doubled.cache_info()
    assert (info.hits, info.misses, info.currsize) == (1, 1, 1)
    assert doubled(2.0) == 4.5 and type(doubled(2.0)) is float
    # as a plain call, which is a constant from now on; and again when the cache is cleared
    assert f(2.5) == 4.5**2
    assert slope(f)(2.5) == 0.0
    doubled.cache_clear()
    assert slope(f)(2.5) == 16 * 2.5**3


def test_a_cache_cleared_inside_is_filled_anew(slope):
    box = [0.0]

    @functools.cache
    def table(n):
        return [box[0] * k for k in range(n)]

    def f(x):
        box[0] = x
        table.cache_clear()
        return sum(table(4)) + sum(table(4)) * x

    for x in (1.5, 2.5, 1.5):
        assert slope(f)(x) == 6.0 + 12.0 * x
    assert table.cache_info().hits == 1 and table(4) == [0.0, 1.5, 3.0, 4.5]


def test_methods_cached_per_object(slope):
    class Model:
        def __init__(self, k):
            self.k = k
            self.calls = 0

        @functools.lru_cache(maxsize=8)
        def rate(self, n):
            self.calls += 1
            return self.k * n

    def f(x):
        model, other = Model(x), Model(2.0 * x)
        y = model.rate(3.0) * model.rate(3.0) + other.rate(3.0)
        assert (model.calls, other.calls) == (1, 1)
        return y

    outside = Model(7.0)
    held = outside.rate(3.0)
    assert slope(f)(1.5) == 18 * 1.5 + 6.0
    assert slope(lambda x: x * (outside.rate(3.0) is held))(1.5) == 1.0
    assert Model.rate.cache_info().currsize == 3
    Model.rate.cache_clear()


def test_properties_over_a_cache(slope):
    class Shape:
        def __init__(self, side):
            self.side = side

        @property
        @functools.lru_cache(maxsize=None)
        def area(self):
            return self.side * self.side

        @staticmethod
        @functools.lru_cache(maxsize=None)
        def twice(v):
            return [v, v]

        @classmethod
        @functools.lru_cache(maxsize=None)
        def named(cls):
            return cls.__name__, []

    assert slope(lambda x: Shape(x).area * Shape(2.0 * x).area)(1.5) == 16 * 1.5**3
    outside = Shape(3.0)
    outside.area  # noqa: B018
    pair, named = Shape.twice(1.5), Shape.named()

    def f(x):
        assert Shape.named() is named and outside.named() is named
        assert Shape.twice(1.5) is pair and Shape.twice(x) is not pair
        return outside.area * x + sum(Shape.twice(x)) + sum(Shape.twice(1.5))

    assert slope(f)(1.5) == 9.0 + 2.0


def test_keys_that_hold_active_numbers(slope):
    @dataclasses.dataclass(frozen=True)
    class Point:
        v: object
        name: str = "p"

    Pair = collections.namedtuple("Pair", "a b")

    @functools.cache
    def key(v):
        while not isinstance(v, float):
            v = v.v if isinstance(v, Point) else next(iter(v))
        return v * v

    makers = [
        lambda v: v,
        Point,
        lambda v: Point(Point((v, 1.0))),
        lambda v: (v, "a"),
        lambda v: ((v,),),
        lambda v: frozenset((v,)),
        lambda v: Pair(v, 1),
        np.float64,
    ]
    for make in makers:
        key.cache_clear()
        key(make(1.5))
        info = key.cache_info()

        def f(x, make=make):
            other = x * 1.0  # equal, of another origin
            return key(make(x)) * key(make(other)) * key(make(1.5)) + key(make(x))

        assert slope(f)(1.5) == 4 * 1.5**5 + 2 * 1.5, make
        after = key.cache_info()
        assert after.currsize == info.currsize and after.hits == info.hits + 1  # the constant was known
        assert key(make(1.5)) == 2.25


def test_properties_over_a_cache_of_objects_compared_by_value(slope):
    @dataclasses.dataclass(frozen=True)
    class Point:
        v: float

        @property
        @functools.lru_cache(maxsize=None)  # noqa: B019
        def square(self):
            return self.v * self.v

    Point(1.5).square  # noqa: B018
    f = lambda x: Point(x).square * Point(1.5).square * Point(x * 1.0).square  # noqa: E731
    assert slope(f)(1.5) == 4 * 1.5**5
    assert slope(lambda x: Point(1.5).square * x)(1.5) == 2.25


def test_cached_properties_of_objects_from_outside_inside_and_with_active_state(slope):
    class Model:
        def __init__(self, k):
            self.k = k
            self.runs = 0

        @functools.cached_property
        def square(self):
            self.runs += 1
            return self.k * self.k

        @functools.cached_property
        def parts(self):
            return []

    outside = Model(3.0)
    parts, square = outside.parts, outside.square

    def f(x):
        assert outside.parts is parts and outside.square is square
        inside = Model(x)
        y = inside.square * inside.square + outside.square * x
        assert inside.runs == 1
        return y

    assert slope(f)(1.5) == 4 * 1.5**3 + 9.0
    fresh = Model(2.0)
    assert slope(lambda x: fresh.square * x)(1.5) == 4.0
    assert vars(fresh)["square"] == 4.0 and fresh.runs == 1
    changed = Model(0.0)

    def sets(x):
        changed.k = x
        return changed.square * x

    assert slope(sets)(1.5) == 3 * 1.5**2
    assert vars(changed)["square"] == 2.25 and sets(2.5) == 2.25 * 2.5  # as in a plain call
    assert slope(sets)(2.5) == 2.25


def test_registries_that_are_appended_to(slope):
    @functools.cache
    def registry():
        return []

    kept = registry()

    def f(x):
        registry().append(x * x)
        return registry()[-1] * x

    assert slope(f)(1.5) == 3 * 1.5**2
    assert registry() is kept and kept == [2.25]
    assert slope(f)(2.0) == 12.0 and kept == [2.25, 4.0]


def test_levels_within_levels_share_the_cache_of_the_program():
    runs = []

    @functools.cache
    def table(n):
        runs.append(n)
        return [float(k) for k in range(n)]

    @functools.cache
    def square(v):
        runs.append("square")
        return v * v

    held = table(3)

    def f(x):
        assert table(3) is held

        def g(y):
            assert table(3) is held and table(4) is table(4)
            return square(y) * square(x) + table(4)[3] * y  # d/dy: 2 y xx + 3

        return plaingrad.grad(g)(x) + square(x) * table(4)[2]

    for outer in (plaingrad.grad, plaingrad.derivative):
        runs.clear()
        table.cache_clear()
        held = table(3)
        assert outer(f)(1.5) == 6 * 1.5**2 + 4 * 1.5
        assert runs.count(3) == runs.count(4) == 1
        assert runs.count("square") == 2  # for the outer x and the inner y, once each
    assert plaingrad.grad(plaingrad.grad(square))(1.5) == 2.0
    assert plaingrad.hessian(lambda x: square(x) * square(x))(1.5) == 12 * 1.5**2
    assert square.cache_info().currsize == 0


def test_a_cell_active_at_two_levels_is_followed_at_both():
    def f(x):
        def g(y):
            @functools.cache
            def h(n):
                return x * y * y * n

            return h(2.0) * h(2.0)  # 4 x x y**4

        return plaingrad.grad(g)(x)  # 16 x x y**3 at y = x: 16 x**5

    assert plaingrad.grad(f)(1.5) == pytest.approx(80 * 1.5**4)
    assert plaingrad.derivative(f)(1.5) == pytest.approx(80 * 1.5**4)


def test_recursion_through_the_cache_of_the_program(slope):
    runs = []

    @functools.cache
    def fib(n):
        runs.append(n)
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    fib(10)
    runs.clear()
    assert slope(lambda x: x * fib(60))(1.5) == 1548008755920
    assert runs == [*range(60, 10, -1)]
    before = fib.cache_info()
    assert slope(lambda x: x * fib(60))(1.5) == 1548008755920 and fib.cache_info().misses == before.misses


def test_an_exception_in_a_cached_body_is_raised_and_not_kept(slope):
    runs = []

    @functools.cache
    def load(name):
        runs.append(name)
        if len(runs) == 1:
            raise KeyError(name)
        return 2.0

    def f(x):
        try:
            return load("a") * x
        except KeyError:
            return load("a") * x * x

    assert slope(f)(1.5) == 6.0
    assert runs == ["a", "a"] and load.cache_info().currsize == 1
    with pytest.raises(TypeError) as plain:
        load([1])
    with pytest.raises(TypeError) as ours:
        slope(lambda x: load([1]) * x)(1.5)
    assert str(ours.value) == str(plain.value)
    with pytest.raises(TypeError):
        slope(lambda x: load((x, [x])) * x)(1.5)


def test_threads_at_levels_of_their_own_share_the_cache_of_the_program():
    barrier = threading.Barrier(4)
    lock = threading.Lock()
    runs = []

    @functools.cache
    def shared():
        with lock:
            runs.append(1)
        return Settings()

    @functools.cache
    def square(v):
        return v * v

    shared()
    found = {}

    def f(x):
        return square(x) * shared().scale * square(1.5)

    def work(k):
        barrier.wait()
        for _ in range(20):
            found.setdefault(k, []).append(plaingrad.grad(f)(float(k)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: [2.0 * k * 3.0 * 2.25] * 20 for k in range(4)}
    assert runs == [1] and square.cache_info().currsize == 1


def test_a_thread_started_inside_fills_the_cache_at_its_level(slope):
    @functools.cache
    def double(n):
        return [n, n]

    def f(x):
        results = []
        thread = threading.Thread(target=lambda: results.append((double(3), double((x, 1))[0][0])))
        thread.start()
        thread.join()
        assert results[0][0] is double(3)
        return results[0][1] * x

    assert slope(f)(1.5) == 3.0
    assert double.cache_info().currsize == 1


def test_what_the_cache_tells_of_itself_inside(slope):
    @functools.lru_cache(maxsize=2)
    def double(v):
        """Twice."""
        return 2.0 * v

    double(1.0)

    def f(x):
        assert double.__name__ == "double" and double.__doc__ == "Twice."
        assert double.cache_parameters() == {"maxsize": 2, "typed": False}
        y = double(x) + double(x) + double(1.0)
        assert tuple(double.cache_info()) == (2, 2, 2, 2)
        double(5.0)
        assert double.cache_info().currsize == 2
        double.cache_clear()
        assert tuple(double.cache_info()) == (0, 0, 2, 0)
        return y + double.__wrapped__(x) + double(x)

    assert slope(f)(3.0) == 8.0
    assert tuple(double.cache_info()) == (0, 0, 2, 0)


def test_c_functions_that_call_a_cached_function(slope):
    @functools.cache
    def weight(k):
        return [0.5, 2.0, 3.0][k]

    @functools.cache
    def square(v):
        return v * v

    class Table(dict):
        @functools.cache  # noqa: B019
        def __missing__(self, k):
            return weight(k)

        __hash__ = object.__hash__

    class Called:
        @functools.cache  # noqa: B019
        def __call__(self, v):
            return v * v

        @functools.cache  # noqa: B019
        def __getitem__(self, v):
            return v * v

    called = Called()
    assert called(1.5) == called[1.5] == 2.25
    assert slope(lambda x: called(x) * called(1.5) + called[x] * called[1.5])(1.5) == 2 * 3.0 * 2.25

    def f(x):
        a, b = sorted([x, 3.0 * x], key=square, reverse=True)
        y = sum(map(weight, range(3))) * x + max([x, 2.0 * x], key=square) + a - b
        return y + functools.reduce(lambda s, v: s + v, map(square, (x, 2.0, x)), 0.0) + Table()[2] * x

    assert slope(f)(1.5) == 5.5 + 2.0 + 2.0 + 4 * 1.5 + 3.0


def test_dispatch_on_types_keeps_its_cache(slope):
    @functools.singledispatch
    def area(shape):
        raise TypeError(shape)

    @area.register
    def _(shape: float):
        return shape * shape

    @area.register(tuple)
    def _(shape):
        return shape[0] * shape[1]

    class Square:
        def __init__(self, side):
            self.side = side

        @functools.singledispatchmethod
        def plus(self, other):
            return self.side + other

        @plus.register(tuple)
        def _(self, other):
            return self.side * other[0]

    def f(x):
        return area(x) * area((x, 2.0)) + Square(x).plus((x,)) + Square(x).plus(x)

    expected = 6 * 1.5**2 + 2 * 1.5 + 2.0
    assert slope(f)(1.5) == expected
    assert f(1.5) == 1.5**2 * 3.0 + 1.5**2 + 3.0
    assert slope(f)(1.5) == expected


def test_a_cached_factory_of_functions_and_arrays(slope):
    @functools.cache
    def power(n):
        def raise_(v):
            return v**n

        return raise_

    @functools.cache
    def weights(n):
        return np.arange(float(n))

    cube, held = power(3), weights(4)

    def f(x):
        assert power(3) is cube and weights(4) is held
        return power(3)(x) + power(2)(x) + (weights(4) * x).sum() + (weights(3) * x).sum()

    assert slope(f)(1.5) == 3 * 1.5**2 + 2 * 1.5 + 6.0 + 3.0
    assert power(2)(3.0) == 9.0 and weights(3).tolist() == [0.0, 1.0, 2.0]


def test_c_code_behind_a_cache(slope):
    data = np.array([1.0, 2.0])
    root = functools.cache(math.sqrt)
    assert root(4.0) == 2.0
    assert slope(lambda x: root(4.0) * root(x))(4.0) == 0.5
    scaled = lambda x: functools.cache((data * x).take)(1)  # noqa: E731
    assert slope(scaled)(1.5) == 2.0
    bound = lambda x: functools.cache(functools.partial(math.hypot, 3.0 * x))(4.0)  # noqa: E731
    assert slope(bound)(1.0) == pytest.approx(9 / 5)


def test_functions_in_caches_are_let_go(slope):
    import gc
    import weakref

    gone = []

    def f(x):
        @functools.cache
        def g(n):
            return x * n

        weakref.finalize(g, gone.append, 1)
        y = g(2.0)
        del g
        gc.collect()
        assert gone, "the cache is gone as in a plain call"
        return y

    assert slope(f)(1.5) == 2.0


def test_checkpoints_and_caches():
    box = [0.0]

    @functools.cache
    def doubled(n):
        return box[0] * n

    @functools.cache
    def square(v):
        return v * v

    def part(x):
        return square(x) * doubled(2.0)

    def f(x):
        box[0] = x
        return plaingrad.checkpoint(part, x) * plaingrad.checkpoint(part, x)

    for _ in range(2):
        doubled.cache_clear()
        try:
            assert plaingrad.grad(f)(1.5) == pytest.approx(4 * 6 * 1.5**5)
        except plaingrad.CheckpointError as refusal:
            assert "run again" in str(refusal)  # noqa: PT017


def test_code_replaced_behind_a_cache_is_followed(slope):
    box = [0.0]

    @functools.cache
    def g(n):
        return box[0] * n

    def f(x):
        box[0] = x
        y = g(2.0)
        g.__wrapped__.__code__ = (lambda n: box[0] * box[0] * n).__code__
        g.cache_clear()
        return y + g(2.0)

    assert slope(f)(1.5) == 2.0 + 6.0
    g.cache_clear()
    assert g(2.0) == 4.5


def test_runs_for_one_derivative_do_not_take_each_others_results_for_constants():
    box = [0.0]
    runs = []

    @functools.cache
    def doubled(n):
        runs.append(n)
        return box[0] * n

    @functools.cache
    def settings():
        return Settings()

    held = settings()

    def f(x):
        assert settings() is held
        box[0] = x[2]
        return np.array([doubled(2.0) * x[1], x[0] * doubled(2.0)])

    x = np.array([1.0, 2.0, 3.0])
    expected = [[0.0, 6.0, 4.0], [6.0, 0.0, 2.0]]
    for options in ({"mode": "forward", "chunk_size": 1}, {"mode": "forward"}, {"mode": "reverse"}):
        doubled.cache_clear()
        assert plaingrad.jacobian(f, **options)(x).tolist() == expected
        assert doubled.cache_info().currsize == 1 and doubled(2.0) == 6.0
    for chunk_size in (1, 2, None):
        doubled.cache_clear()
        hessian = plaingrad.hessian(lambda x: f(x).sum(), chunk_size=chunk_size)(x)
        assert hessian.tolist() == [[0.0, 0.0, 2.0], [0.0, 0.0, 2.0], [2.0, 2.0, 0.0]]
    sparse = pytest.importorskip("scipy.sparse")
    doubled.cache_clear()
    found = plaingrad.sparse_jacobian(f, x)
    assert isinstance(found, sparse.csr_array) and found.toarray().tolist() == expected
    # what an earlier derivative has left is a constant, as in a plain call
    assert plaingrad.jacobian(f, mode="forward", chunk_size=1)(x).tolist() == [[0.0, 6.0, 0.0], [6.0, 0.0, 0.0]]


class Unit:
    """A key that knows its registry, which knows all keys."""

    registry = {}

    def __init__(self, name):
        self.name = name
        self.all = Unit.registry
        self.all[name] = self

    def __eq__(self, other):
        return self.name == other.name

    def __hash__(self):
        return hash(self.name)


@functools.lru_cache
def scale_of(unit):
    return 2.0 if unit.name == "km" else 1.0


def test_keys_that_know_one_another_are_looked_through_once():
    units = [Unit(name) for name in ("km", "m", "s")]

    def f(x):
        return x * sum(scale_of(unit) for unit in units)

    assert plaingrad.grad(f)(3.0) == f(1.0) == 4.0
    assert plaingrad.jvp(f, (3.0,), (1.0,)) == (12.0, 4.0)
