"""Generators: suspended frames carry active values between steps, callers and levels."""

import contextlib
import itertools
import math

import numpy as np
import pytest

import plaingrad
from cases import check, check_or_refused


def test_a_generator_yields_powers_and_its_caller_sums_them():
    def powers(x, n):
        p = 1.0
        for _ in range(n):
            p = p * x
            yield p

    x = 1.2
    check(lambda v: sum(powers(v, 5)), x, gradient=sum(k * x ** (k - 1) for k in range(1, 6)))


def test_send_feeds_active_values_into_a_running_average():
    def averager():
        total, count, average = 0.0, 0, None
        while True:
            v = yield average
            total += v
            count += 1
            average = total / count

    def f(v):
        avg = averager()
        next(avg)
        return sum(avg.send(a) ** 2 for a in v)

    m = [1.0, 2.5, 1.0]
    check(
        f,
        [1.0, 4.0, -2.0],
        gradient=[2 * m[0] + m[1] + 2 * m[2] / 3, m[1] + 2 * m[2] / 3, 2 * m[2] / 3],
    )


def test_throw_enters_an_except_block_with_the_value_carried_by_the_exception():
    class Retry(Exception):
        pass

    def worker(x):
        y = x
        while True:
            try:
                yield y
                y = y * x
            except Retry as error:
                y = error.args[0] * y + x
            finally:
                y = y + 1.0

    def f(x):
        w = worker(x)
        a = next(w)  # x
        b = w.throw(Retry(x * x))  # x^3 + x + 1
        c = next(w)  # (x^3 + x + 1) x + 1
        return a + b + c

    x = 1.3
    check(f, x, gradient=1 + 3 * x * x + 1 + 4 * x**3 + 2 * x + 1)


def test_close_runs_the_finally_block_with_active_values():
    def resource(x, log):
        try:
            yield x * 2.0
            yield x * 3.0
        except GeneratorExit:
            log.append(x * 5.0)
            raise
        finally:
            log.append(x * x)

    def f(x):
        log = []
        g = resource(x, log)
        first = next(g)
        g.close()
        h = resource(x, log)
        next(h)
        del h  # closed when collected
        return first + sum(log)

    check(f, 1.5, gradient=2 + 10 + 4 * 1.5)


def test_yield_from_delegates_values_sends_throws_and_the_result():
    def inner(x):
        received = yield x
        try:
            yield received * x
        except KeyError as e:
            yield e.args[0] * 10.0
        return x**3

    def outer(x):
        result = yield from inner(x)
        yield result * 2.0
        yield from (v * x for v in (1.0, x))
        yield from [x, 5.0]

    def f(x):
        g = outer(x)
        out = [next(g), g.send(x * x), g.throw(KeyError(x)), *g]
        return sum(k * v for k, v in enumerate(out, start=1))

    # x, x^3, 10x, 2x^3, x, x^2, x, 5
    x = 1.2
    check(f, x, gradient=1 + 6 * x * x + 30 + 24 * x * x + 5 + 12 * x + 7)


def test_a_generator_expression_is_lazy_and_binds_its_first_iterable_early():
    def f(x):
        k = 2.0
        source = [x, x * x]
        g = (k * v for v in source)
        source = [0.0]
        k = 10.0
        first = next(g)
        k = x
        return first + sum(g)

    # 10 x + x^3
    x = 1.5
    check(f, x, gradient=10 + 3 * x * x)


def test_an_infinite_generator_is_cut_by_islice_takewhile_and_break():
    def newton(a):
        x = a
        while True:
            yield x
            x = 0.5 * (x + a / x)

    def f(a):
        (last,) = itertools.islice(newton(a), 10, 11)
        small = list(itertools.takewhile(lambda v: v > 1.01 * math.sqrt(a), newton(a)))
        for v in newton(a):
            if abs(v * v - a) < 1e-4:
                break
        return last + len(small) + v

    def steps(a, n):
        x, d = a, 1.0
        for _ in range(n):
            x, d = 0.5 * (x + a / x), 0.5 * (d + 1 / x - a * d / x**2)
        return d

    # from 2: 2, 1.5, 1.41667, 1.4142157 (squared 2.000006) stops at n = 3
    check(f, 2.0, gradient=steps(2.0, 10) + steps(2.0, 3))


def test_generators_chain_into_a_pipeline():
    def read(v):
        yield from v

    def smooth(source, k):
        state = 0.0
        for a in source:
            state += k * (a - state)
            yield state

    def pairs(source):
        previous = next(source)
        for a in source:
            yield previous * a
            previous = a

    def f(v, k):
        return sum(pairs(smooth(read(v), k)))

    v, k = [1.0, 2.0, 4.0], 0.25
    s = [k * v[0]]
    s.append(s[0] + k * (v[1] - s[0]))
    s.append(s[1] + k * (v[2] - s[1]))
    ds = [[k, 0.0, 0.0], [k * (1 - k), k, 0.0], [k * (1 - k) ** 2, k * (1 - k), k]]
    dk = [v[0]]
    dk.append(dk[0] * (1 - k) + v[1] - s[0])
    dk.append(dk[1] * (1 - k) + v[2] - s[1])
    outer = [s[1], s[0] + s[2], s[1]]
    check(
        f,
        v,
        k,
        gradient=(
            [sum(outer[i] * ds[i][j] for i in range(3)) for j in range(3)],
            sum(o * d for o, d in zip(outer, dk, strict=True)),
        ),
    )


def test_recursive_generators_walk_a_tree():
    def leaves(tree):
        if isinstance(tree, (list, tuple)):
            for branch in tree:
                yield from leaves(branch)
        else:
            yield tree

    def f(tree):
        return sum(k * v * v for k, v in enumerate(leaves(tree), start=1))

    check(
        f,
        [1.0, [2.0, (3.0, [4.0])], [], 5.0],
        gradient=[2.0, [8.0, (18.0, [32.0])], [], 50.0],
    )


def test_permutations_by_a_backtracking_generator_give_a_determinant():
    def signed_permutations(n):
        if n == 0:
            yield 1.0, ()
            return
        for sign, rest in signed_permutations(n - 1):
            for at in range(n):
                yield sign * (-1) ** (n - 1 - at), (*rest[:at], n - 1, *rest[at:])

    def det(m):
        return sum(s * math.prod(m[i][j] for i, j in enumerate(p)) for s, p in signed_permutations(3))

    m = [[2.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.0, 2.0, 4.0]]
    a = np.array(m)
    cofactors = np.linalg.det(a) * np.linalg.inv(a).T
    check(det, m, gradient=cofactors.tolist(), rtol=1e-11)


def test_the_return_value_arrives_in_stop_iteration():
    def g(x):
        yield x
        return x**4

    def f(x):
        it = g(x)
        total = next(it)
        try:
            next(it)
        except StopIteration as stop:
            total += stop.value
        return total

    check(f, 1.5, gradient=1 + 4 * 1.5**3)


def test_contextmanager_functions_hand_over_and_clean_up_active_values():
    @contextlib.contextmanager
    def scaled(stack, k):
        stack.append(k)
        try:
            yield k * k
        except ValueError as e:
            stack.append(e.args[0] * 3.0)
        else:
            stack.append(7.0)
        finally:
            stack.append(k * 2.0)

    def f(x):
        stack = []
        with scaled(stack, x) as y:
            stack.append(y)
        with scaled(stack, x * x):
            raise ValueError(x)
        return sum(w * v for w, v in enumerate(stack, start=1))

    # x, x^2, 7, 2x, x^2, 3x, 2x^2
    x = 1.5
    check(f, x, gradient=1 + 4 * x + 8 + 10 * x + 18 + 28 * x)


def test_contextmanagers_decorate_functions_and_stack_on_an_exit_stack():
    log = []

    @contextlib.contextmanager
    def entry(v):
        log.append(v)
        yield v * 2.0
        log.append(-v)

    @entry(3.0)
    def decorated(v):
        return v * v

    def f(x):
        with contextlib.ExitStack() as stack:
            inside = [stack.enter_context(entry(k * x)) for k in (1.0, 2.0)]
            stack.callback(log.append, x * 100.0)
            with contextlib.suppress(ZeroDivisionError):
                inside.append(x / 0)
            total = sum(inside)
        with contextlib.closing(contextlib.nullcontext(x)) if False else contextlib.nullcontext(x) as y:
            total += y
        return total + decorated(x) + log[2]

    # 2x + 4x + x + x^2 + log[2] = 100 x (callbacks run before the exits)
    check(f, 1.5, gradient=7 + 3.0 + 100, setup=log.clear, state=lambda: log)


@pytest.mark.unchecked(reason="the generator is used up by one call")
def test_a_generator_of_constants_made_outside_is_stepped_inside():
    def constants():
        yield 2.0
        yield 3.0

    def f(x):
        return sum(x * c for c in source[0])

    source = [None]

    def refill():
        source[0] = constants()

    check(f, 1.5, gradient=5.0, setup=refill)


def test_a_generator_made_outside_and_fed_with_active_values_is_never_silently_wrong():
    def echo():
        y = 0.0
        while True:
            v = yield y
            y = v * v

    def f(x):
        return source[0].send(x) * 2.0

    source = [echo()]
    next(source[0])
    try:
        g = plaingrad.grad(f)(3.0)
    except plaingrad.PlaingradError:
        return
    assert g == 12.0


def test_a_generator_made_outside_that_reads_an_active_cell_is_never_silently_wrong():
    box = {"v": 1.0}

    def reader():
        while True:
            yield box["v"] * box["v"]

    def f(x):
        box["v"] = x
        return next(source) * 2.0

    source = reader()
    try:
        g = plaingrad.grad(f)(3.0)
    except plaingrad.PlaingradError:
        return
    assert g == 12.0


def test_a_generator_expression_passed_as_an_argument_of_an_inner_function():
    def total(values, start=0.0):
        for v in values:
            start = start * 0.5 + v
        return start

    check(lambda x: total((x**k for k in range(4)), start=x), 1.5, gradient=0.0625 + 0.5 * 1.0 * 0.5 + 0.5 * 3.0 + 6.75)


def test_a_generator_made_at_one_level_is_resumed_at_another():
    def f(x):
        def source():
            v = x
            while True:
                v = v * x
                yield v

        g = source()
        first = next(g)  # x^2, outside the inner gradient
        inner = plaingrad.grad(lambda y: y * y * next(g))  # next: x^3
        slope = inner(x)  # 2 x x^3
        return first + slope + next(g)  # x^4

    x = 1.5
    assert plaingrad.grad(f)(x) == pytest.approx(2 * x + 8 * x**3 + 4 * x**3, rel=1e-14)


def test_a_generator_made_at_an_inner_level_is_resumed_at_the_outer_one():
    kept = []

    def f(x):
        def inner(y):
            def source():
                while True:
                    yield x * x
                    yield x**3

            kept.append(source())
            return y * next(kept[-1])

        slope = plaingrad.grad(inner)(x)  # x^2
        return slope * 10.0 + next(kept[-1])  # x^3

    x = 1.5
    assert plaingrad.grad(f)(x) == pytest.approx(20 * x + 3 * x * x, rel=1e-14)


@pytest.mark.unchecked(reason="the generator is used up by one call")
def test_a_generator_outlives_its_gradient_and_gives_plain_numbers():
    kept = []

    def f(x):
        def source():
            v = x
            while True:
                yield v
                v = v * x

        g = source()
        kept.append(g)
        return next(g) + next(g)

    assert plaingrad.grad(f)(3.0) == 7.0
    assert next(kept[0]) == 27.0
    assert plaingrad.grad(lambda z: z * next(kept[0]))(2.0) == 81.0


def test_two_generators_talk_to_each_other():
    def player(k):
        v = yield
        while True:
            v = yield v * k

    def f(a, b):
        left, right = player(a), player(b)
        next(left), next(right)
        v = 1.0
        for _ in range(3):
            v = right.send(left.send(v)) + 1.0
        return v

    # v = ((ab + 1) ab + 1) ab + 1 = p^3 + p^2 + p + 1
    a, b = 0.5, 3.0
    p = a * b
    d = 3 * p * p + 2 * p + 1
    check(f, a, b, gradient=(d * b, d * a))


def test_a_round_robin_scheduler_runs_cooperative_tasks():
    def task(name, x, n, log):
        for k in range(n):
            log.append((name, x * k))
            x = x * 1.5
            yield

    def f(x, y):
        log = []
        tasks = [task("a", x, 2, log), task("b", y, 4, log)]
        while tasks:
            t = tasks.pop(0)
            try:
                next(t)
            except StopIteration:
                continue
            tasks.append(t)
        return sum(v * (2.0 if name == "a" else 3.0) for name, v in log)

    check(f, 2.0, 3.0, gradient=(2 * 1.5, 3 * (1.5 + 2 * 1.5**2 + 3 * 1.5**3)))


def test_a_coroutine_style_decorator_primes_generators_and_a_sink_collects():
    def primed(g):
        def start(*args, **kw):
            it = g(*args, **kw)
            next(it)
            return it

        return start

    @primed
    def sink(out):
        try:
            while True:
                out.append((yield))
        finally:
            out.append(len(out) * out[0])

    @primed
    def scale(k, target):
        try:
            while True:
                v = yield
                target.send(v * k)
        finally:
            target.close()

    def f(x):
        out = []
        pipe = scale(x, sink(out))
        for v in (1.0, x, x * x):
            pipe.send(v)
        pipe.close()
        return sum(out)

    # x + x^2 + x^3 + 3x
    x = 1.4
    check(f, x, gradient=4 + 2 * x + 3 * x * x)


def test_yield_inside_try_with_and_comprehension_arguments():
    def g(x):
        values = []
        for k in range(3):
            try:
                with contextlib.nullcontext(k * x) as v:
                    sent = yield [v * w for w in (1.0, x)]
                    values.append(sent or v)
            except ZeroDivisionError:
                values.append(x)
        return sum(values)

    def f(x):
        it = g(x)
        total = sum(next(it)) + sum(it.send(x * 5.0)) + sum(it.throw(ZeroDivisionError))
        try:
            next(it)
        except StopIteration as stop:
            return total + stop.value

    # 0 + (x + x^2) + (2x + 2x^2) + [5x, x, 2x]
    x = 1.5
    check(f, x, gradient=1 + 2 * x + 2 + 4 * x + 8)


def test_a_generator_method_with_iter_as_generator_function_on_a_class():
    class Series:
        def __init__(self, x):
            self.x = x

        def __iter__(self):
            term = 1.0
            for k in itertools.count(1):
                yield term
                term = term * self.x / k

        def partial_sums(self, n):
            total = 0.0
            for term in itertools.islice(self, n):
                total += term
                yield total

    x = 0.8
    check(
        lambda v: list(Series(v).partial_sums(5))[-1],
        x,
        gradient=sum(x**k / math.factorial(k) for k in range(4)),
    )


def test_generators_in_all_argument_positions_of_builtins():
    def f(v):
        g = lambda: (a * a for a in v)  # noqa: E731
        a, *rest = g()
        d = dict((k, w) for k, w in zip("abc", g(), strict=False))
        return (
            sum(g(), v[0])
            + max(g())
            + min(w for w in g())
            + sorted(g(), reverse=True)[0]
            + a
            + rest[-1]
            + d["b"]
            + tuple(g())[1]
            + [*g()][0]
            + math.prod(g())
            + any(w > 3.0 for w in g())
        )

    a, b, c = v = [1.0, 2.0, 3.0]
    p = 2 * a * b * b * c * c
    check(
        f,
        v,
        gradient=[
            2 * a + 1 + 2 * a + 2 * a + 2 * a + p,
            2 * b * 3 + 2 * b * a * a * c * c,
            2 * c * 4 + 2 * c * a * a * b * b,
        ],
    )


def test_a_generator_yields_arrays_that_it_goes_on_writing():
    def walk(x):
        state = np.zeros(2)
        for k in range(3):
            state[k % 2] += x
            yield state

    def f(x):
        total = 0.0
        views = []
        for s in walk(x):
            total += s[0] * s[1]
            views.append(s)
        return total + float(views[0].sum())

    # (x, 0), (x, x), (2x, x): 0 + x^2 + 2x^2 ; views[0] is (2x, x)
    check(f, 1.5, gradient=6 * 1.5 + 3)


def test_an_exception_inside_a_generator_leaves_through_its_consumer():
    def g(x):
        yield x * 2.0
        raise LookupError(x * 5.0)

    def f(x):
        total = 0.0
        it = g(x)
        try:
            for v in it:
                total += v
        except LookupError as e:
            total += e.args[0]
        return total + sum(it)

    check(f, 1.5, gradient=7.0)


def test_a_generator_held_by_the_argument_object_is_exact_or_refused():
    class Stream:
        def __init__(self, k):
            self.k = k

        def values(self):
            while True:
                yield self.k
                self.k = self.k * 2.0

    def f(k):
        s = Stream(k)
        it = s.values()
        a, b, c = (next(it) for _ in range(3))
        return a * b + c * s.k

    # k * 2k + 4k * 4k
    check_or_refused(f, 1.5, gradient=36 * 1.5)
