"""Programs in every kind of Python: rewritten, each must do exactly what it does plainly."""

import asyncio
import contextlib
import math


class Box:
    total = 0

    def __init__(self, value=1.5):
        self.value = value

    def scaled(self, by, *more, plus=0.0):
        return self.value * by + plus + sum(more)

    @property
    def half(self):
        return self.value / 2

    @half.setter
    def half(self, h):
        self.value = 2 * h

    @classmethod
    def make(cls, v):
        return cls(v)

    @staticmethod
    def twice(v):
        return v + v

    def __getitem__(self, key):
        return ("item", key)

    def __setitem__(self, key, value):
        self.value = (key, value)

    def __delitem__(self, key):
        self.value = ("deleted", key)

    def __contains__(self, x):
        return x == self.value

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.left = exc[0]
        return exc[0] is KeyError

    def __call__(self, *args, **kwargs):
        return args, kwargs

    def __repr__(self):
        return f"Box({self.value!r})"


class Child(Box):
    def scaled(self, by, *more, plus=0.0):
        return super().scaled(by, *more, plus=plus) + super(Child, self).half

    @classmethod
    def make(cls, v):
        return super().make(v + 1)

    def in_comprehension(self):
        return [self.half for _ in range(2)]

    def __getattr__(self, name):
        return f"no {name}"


def case_arithmetic():
    a, b = 7, 3
    out = [a + b, a - b, a * b, a / b, a // b, a % b, a**b, a << b, a >> b, a & b, a | b, a ^ b, -a, +a, ~a]
    c = a
    c += b
    c -= 1
    c *= 3
    c /= 2
    c //= 1
    c %= 11
    c **= 2
    d = 12
    d <<= 2
    d >>= 1
    d &= 29
    d |= 3
    d ^= 5
    return out, c, d


def case_matmul():
    class M:
        def __matmul__(self, other):
            return "matmul"

        def __imatmul__(self, other):
            return "imatmul"

    m = M()
    out = m @ 1
    m @= 2
    return out, m


def case_in_place_changes_the_same_list():
    a = b = [1]
    a += [2]
    a *= 2
    return a is b, b


def case_comparisons():
    a, b = 1.0, 2
    return a < b, a <= b, a == b, a != b, a > b, a >= b, a is b, a is not b, a in (1, 2), b not in {3}, not a


def case_chained_comparisons():
    calls = []

    def f(x):
        calls.append(x)
        return x

    return f(1) < f(2) < f(3), f(3) < f(2) < f(1), 1 <= f(1) == 1 != f(2), calls


def case_boolean_operators():
    out = []
    for a in (0, 1, "", "x"):
        for b in ([], [1]):
            out += [a and b, a or b, not a and not b, (a or b) and not (a and b), 1 if a else 2]
            if a and b or not a:
                out.append("if")
            elif b:
                out.append("elif")
    return out


def case_truth_of_objects():
    class T:
        def __init__(self, n):
            self.n = n

        def __len__(self):
            return self.n

    return [bool(T(n)) for n in range(2)], [n for n in range(3) if T(n)], not T(0), T(1) and 5


def case_truth_that_raises():
    class T:
        def __bool__(self):
            raise ValueError("ambiguous")

    if T():
        return 1
    return 2


def case_comparison_results_without_truth():
    class A:
        def __lt__(self, other):
            return [self, other]

    a = A()
    return (a < 3)[1], [1 for _ in "x" if a < 3]


def case_subscripts():
    x = list(range(10))
    x[2] = "two"
    x[3:5] = "ab"
    x[-1:] = []
    del x[0], x[1:2]
    b = Box()
    b[1:2, ..., ::3] = 5
    i = 2
    x[i] += "!"
    return x, x[1], x[1:], x[:2], x[::2], x[i : i + 2], b.value, b[i:], b[i:3:4], b[()]


def case_deletions():
    b = Box()
    b.extra = 1
    del b.extra
    del b[3]
    x = y = 1
    del x
    with contextlib.suppress(UnboundLocalError):
        return x
    return b.value, y, hasattr(b, "extra")


def case_attributes():
    b = Box(4.0)
    b.half = 3
    b.value += 0.5
    b.new = [1]
    b.new[0] += 1
    Box.total += 1
    Box.total -= 1
    return b.value, b.half, b.new, b.twice(2), Box.make(3).value, b.scaled(2), Box.scaled(b, 2), Child(1).anything


def case_missing_attribute():
    return Box().nothing + 1


def case_missing_method():
    return Box().nothing(1)


def case_read_only_attribute():
    (1).real = 2


def case_unknown_name():
    return nobody_defined_this  # noqa: F821


def case_calls():
    def f(a, b=2, /, c=3, *args, d=4, e, **kw):
        return a, b, c, args, d, e, kw

    xs, kw = [1, 2], {"d": 5, "z": 6}
    return (
        f(1, e=2),
        f(1, 2, 3, 4, 5, d=1, e=0, g=3),
        f(*xs, e=1),
        f(0, *xs, *xs, e=9, **kw),
        f(*(x for x in xs), **{"e": 1}, **kw),
        f(*"ab", e=[*xs, *xs], **dict(y=1)),
        print(end=""),
        max(xs, key=lambda v: -v),
        Box()(1, *xs, k=2, **kw),
        Box(2).scaled(3, *xs, plus=1),
        Box(2).scaled(3, 4, plus=1),
    )


def case_calls_with_conditions_in_arguments():
    def f(*args, **kw):
        return args, kw

    return [f(1 if i else 2, f(i) if i > 1 else f, k=i or f)[0][0] for i in range(3)]


def case_calls_with_calls_in_arguments():
    def add(*xs):
        return sum(xs)

    return add(add(1, add(2, 3)), *[add(4, add(5))], add(*[6, add(7)])), Box(add(1, 2)).scaled(add(2), add(3, 4))


def case_not_callable():
    x = 3
    return x(1, 2)


def case_wrong_arguments():
    def f(a, *, b):
        return a, b

    return f(1, 2)


def case_missing_keyword():
    def f(a, *, b):
        return a, b

    return f(1)


def case_star_of_a_number():
    def f(*a):
        return a

    return f(*3)


def case_double_star_of_a_list():
    def f(**k):
        return k

    return f(**[1])


def case_the_same_keyword_twice():
    def f(**k):
        return k

    return f(a=1, **{"a": 2})


def case_unpack_a_number():
    a, b = 3
    return a, b


def case_unpack_too_many():
    a, b = "abc"
    return a, b


def case_unpack_too_few():
    a, *b, c = "a"
    return a, b, c


def case_unpacking():
    (a, b), *c, d = [1, 2], 3, 4, 5
    e, f = "xy"
    g, *h = (i * i for i in range(4))
    [i, *j] = {"k": 1}
    x, (y, z) = 1, (2, 3)
    x, y = y, x
    a, b, c = c, a, b
    return a, b, c, d, e, f, g, h, i, j, x, y, z


def case_displays():
    a, b = [1, 2], (3, 4)
    m = {"x": 1}
    return [*a, *b, 5], (*a, 0, *b), {*a, *b}, {**m, "y": 2, **{"x": 3}}, [1, 2, 3], {1, 2, 3}, {"a": 1, "b": a}


def case_display_of_a_number():
    return [*5]


def case_dict_display_of_a_number():
    return {**5}


def case_loops():
    out = []
    for i in range(10):
        if i == 2:
            continue
        if i == 5:
            break
        for j in "ab":
            out.append((i, j))
    else:
        out.append("never")
    while i > 0:
        i -= 1
        if i == 2:
            break
    else:
        out.append("never")
    for _ in ():
        pass
    else:
        out.append("else")
    while True:
        i += 1
        if i > 4:
            return out, i


def case_iterate_a_number():
    for _ in 4:
        pass


def case_iterator_that_raises():
    class It:
        def __iter__(self):
            return self

        def __next__(self):
            raise KeyError("next")

    return [i for i in It()]


def case_comprehensions():
    n = 3
    return (
        [i * n for i in range(4) if i % 2],
        {i: j for i in range(3) for j in range(i)},
        {i // n for i in range(9)},
        list(i + j for i in range(2) for j in range(n) if i or j),
        [[i * j for i in range(n)] for j in range(n)],
        [(lambda k: k + i + n)(1) for i in range(2)],
        [f() for f in [lambda: i for i in range(3)]],
        [y := n, y**2],
        [last := i for i in range(3)],
        last,
        sum(x * x for x in (1.0, 2.0)),
        all(i < n for i in range(3)),
        any(i > n for i in range(3)),
        tuple(i for i in range(3)),
    )


def case_comprehension_shadows_a_local():
    x = "outer"
    inner = [x for x in range(3)]
    y = [x for _ in range(2) for x in "ab"]
    return x, inner, y


def case_comprehension_that_raises():
    x = "kept"
    try:
        [1 // x for x in (1, 0)]
    except ZeroDivisionError:
        return x


def case_closures():
    count = 0

    def bump(by=1):
        nonlocal count
        count += by
        return count

    def make(n):
        def inner(x):
            return x + n + count

        return inner

    fs = [make(i) for i in range(3)]
    bump()
    bump(2)
    del make
    return count, [f(1) for f in fs]


def case_cells_of_arguments():
    def f(a, b, *c, d=1, **e):
        return lambda: (a, b, c, d, e)

    return f(1, 2, 3, d=4, g=5)()


def case_unbound_cell():
    def f():
        return x

    if f is None:
        x = 1
    return f()


COUNTER = 0


def case_globals():
    global COUNTER
    COUNTER += 2
    COUNTER -= 2
    return COUNTER, math.pi


def case_classes():
    def deco(c):
        c.tag = "decorated"
        return c

    class Meta(type):
        def __new__(mcls, name, bases, ns, **kw):
            ns["kw"] = kw
            return super().__new__(mcls, name, bases, ns)

        def __init__(cls, name, bases, ns, **kw):
            super().__init__(name, bases, ns)

    @deco
    class A(Box, metaclass=Meta, flag=3):
        x = 2
        y = x * 3 + 1
        z = [i * 2 for i in range(y)]
        x += 1
        name: str = "n"
        if x > 2:
            w = {"k": x}["k"]
        for i in range(3):
            total = i
        try:
            v = 1 / 0
        except ZeroDivisionError as e:
            v = str(e)

        def m(self):
            return __class__.__name__, self.x

        class Inner:
            q = 3

    return A.tag, A.kw, A.x, A.y, A.z, A.w, A.v, A.total, A().m(), A.Inner.q, A.__qualname__, A.__annotations__


def case_super():
    c = Child(2.0)
    return c.scaled(3, 1, plus=1), Child.make(1).value, c.in_comprehension(), c.absent


def case_super_by_hand():
    class A:
        def f(self):
            return "A.f"

        attr = 5

    class B(A):
        def f(self):
            return super(B, self).f(), super().f, super().attr, super(B, self).attr

        @staticmethod
        def g(self):
            return super(B, self).f()

        def h(self):
            s = super
            return s(B, self).attr

    b = B()
    first, bound, *rest = b.f()
    return first, bound(), rest, b.g(b), b.h()


def case_super_without_attribute():
    class A:
        def f(self):
            return super().nothing

    return A().f()


def case_decorators():
    log = []

    def deco(n):
        log.append(("made", n))

        def wrap(f):
            log.append(("wraps", n, f.__name__))
            return lambda *a: (n, f(*a))

        return wrap

    @deco(1)
    @deco(2)
    def f(x):
        return x * 2

    return f(3), log


def case_exceptions():
    log = []

    def f(kind):
        try:
            log.append("try")
            if kind == 0:
                return "returned"
            if kind == 1:
                raise ValueError("v")
            if kind == 2:
                {}["missing"]
            if kind == 3:
                raise KeyboardInterrupt
        except (ValueError, TypeError) as e:
            log.append(repr(e))
            return "handled"
        except KeyError:
            log.append("key")
            raise RuntimeError("from key") from None
        else:
            log.append("else")
        finally:
            log.append("finally")
        return "end"

    out = []
    for kind in range(5):
        try:
            out.append(f(kind))
        except BaseException as e:
            out.append((type(e).__name__, str(e), e.__suppress_context__))
    return out, log


def case_return_in_finally():
    def f():
        for i in range(3):
            try:
                return i
            finally:
                if i < 1:
                    continue
                break
        return "after", i

    return f()


def case_nested_exceptions():
    try:
        try:
            1 / 0
        except ZeroDivisionError as e:
            raise KeyError("inner") from e
        finally:
            x = 1
    except KeyError as e:
        return type(e.__cause__).__name__, x, e.__traceback__.tb_lineno - case_nested_exceptions.__code__.co_firstlineno


def case_exception_with_context():
    try:
        raise ValueError("first")
    except ValueError:
        return [1][3]


def case_raise_from():
    raise RuntimeError("x") from KeyError("y")


def case_raise_a_number():
    raise 3


def case_raise_again():
    try:
        1 // 0
    except ZeroDivisionError:
        raise


def case_exception_groups():
    log = []
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), TypeError(2), ExceptionGroup("h", [OSError(3)])])
        except* ValueError as e:
            log.append([str(x) for x in e.exceptions])
        except* OSError as e:
            log.append(repr(e))
    except ExceptionGroup as e:
        log.append(repr(e))
    return log


def case_assertions():
    x = 2
    assert x == 2
    assert x and "never"
    assert x > 3, f"x is {x}"


def case_with():
    log = []

    class C:
        def __init__(self, n, swallow=False):
            self.n, self.swallow = n, swallow

        def __enter__(self):
            log.append(f"in {self.n}")
            return self.n

        def __exit__(self, kind, value, tb):
            log.append((self.n, kind and kind.__name__))
            return self.swallow

    with C(1) as a, C(2), C(3, True) as (c):
        log.append(a + c)
        raise KeyError
    with C(4), C(5):
        log.append("body")
    for i in range(3):
        with C(6):
            if i == 1:
                break
            continue
    with contextlib.suppress(ZeroDivisionError), C(7):
        1 / 0

    def f():
        with C(8):
            return "out"

    return f(), log


def case_with_a_number():
    with 3:
        pass


def case_exit_of_box():
    with Box() as b:
        raise KeyError("swallowed")
    return b.left.__name__


def case_generators():
    def squares(n):
        for i in range(n):
            got = yield i * i
            if got:
                yield ("got", got)
        return "done"

    def outer():
        r = yield from squares(3)
        yield r
        yield from [1, 2]
        return (yield)

    g = outer()
    out = [next(g), g.send("hello"), *g]
    h = squares(2)
    next(h)
    try:
        h.throw(ValueError("thrown"))
    except ValueError as e:
        out.append(str(e))
    k = squares(2)
    next(k)
    k.close()
    return out, list(k), [*(i for i in range(3))]


def case_generator_catches_what_is_thrown():
    log = []

    def g():
        while True:
            try:
                x = yield len(log)
                log.append(x * 2)
            except ValueError as e:
                log.append(str(e))
            except GeneratorExit:
                log.append("exit")
                return
            finally:
                log.append("f")

    def delegating():
        try:
            yield from g()
        except KeyError:
            log.append("outer key")
            yield "recovered"

    i = delegating()
    next(i)
    i.send(4)
    i.throw(ValueError("a"))
    r = i.throw(KeyError("k"))
    i.close()
    j = delegating()
    next(j)
    j.close()
    return r, log


def case_throw_ends_a_delegation():
    def inner():
        try:
            yield 1
        except ValueError:
            return 5.0 * 2

    def outer():
        x = yield from inner()
        yield x * 3
        return x + 1

    g = outer()
    next(g)
    y = g.throw(ValueError)
    try:
        next(g)
    except StopIteration as e:
        return y, e.value


def case_stop_iteration_in_a_generator():
    def g():
        yield 1
        raise StopIteration(2)

    return list(g())


def case_generator_frames():
    def g():
        x = 1
        yield x
        x += 1

        yield x

    i = g()
    first = g.__code__.co_firstlineno
    lines = []
    for _ in i:
        lines.append((i.gi_frame.f_lineno - first, i.gi_running, i.gi_yieldfrom))
    return lines, i.gi_frame


def case_yield_from_shows_itself():
    def inner():
        yield 1

    def outer(it):
        yield from it

    it = inner()
    o = outer(it)
    next(o)
    return o.gi_yieldfrom is it


def case_coroutines():
    log = []

    class Aw:
        def __await__(self):
            got = yield "suspended"
            log.append(got)
            return 7

    class Manager:
        async def __aenter__(self):
            log.append("aenter")
            await asyncio.sleep(0)
            return 2

        async def __aexit__(self, kind, e, tb):
            await asyncio.sleep(0)
            log.append(("aexit", kind and kind.__name__))
            return kind is KeyError

    async def agen(n):
        try:
            for i in range(n):
                await asyncio.sleep(0)
                yield i * 1.5
        finally:
            log.append("agen closed")

    async def main():
        async with Manager() as m, Manager():
            log.append(m * 3)
            raise KeyError
        total = 0
        async for x in agen(4):
            total += x
        else:
            log.append("else")
        squares = [x * x async for x in agen(3) if x]
        d = {x: await asyncio.sleep(0, x) async for x in agen(2)}
        g = (x + 1 async for x in agen(2))
        rest = [y async for y in g]
        a = agen(3)
        await a.asend(None)
        await a.aclose()
        b = agen(3)
        await b.asend(None)
        try:
            await b.athrow(ValueError("into"))
        except ValueError as e:
            log.append(str(e))
        both = await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2))
        return total, squares, d, rest, both

    result = asyncio.run(main())

    async def lone():
        return await Aw() + 1

    c = lone()
    first = c.send(None)
    try:
        c.send("value")
    except StopIteration as e:
        return result, first, e.value, log


def case_calls_around_async_comprehensions():
    async def agen(n):
        for i in range(n):
            yield i

    async def f():
        total = sum([i async for i in agen(4)], 1.5)
        sets = {sum([i async for i in agen(j)]) for j in [3, 5]}
        nested = {j: max({i: i + j async for i in agen(2)}, key=lambda k: -k) for j in [10, 20]}
        return total, sets, nested, [len([x async for x in g]) for g in (agen(1), agen(2))]

    return asyncio.run(f())


def case_generators_with_calls_in_handlers():
    def f(n):
        try:
            yield max(n, [i for i in range(n)][n])
        except IndexError as e:
            yield str(max(n, min(n, len([i for i in e.args])), (yield 1) or 0))
        return sum([1 // (n - 2) if n > 2 else 0 for _ in "ab"], start=n)

    out = []
    for n in range(4):
        g = f(n)
        try:
            while True:
                out.append(next(g))
        except StopIteration as e:
            out.append(e.value)
    return out


def case_cancellation():
    log = []

    async def worker():
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            log.append("cancelled")
            raise
        finally:
            log.append("cleanup")

    async def main():
        t = asyncio.create_task(worker())
        await asyncio.sleep(0)
        t.cancel()
        try:
            await t
        except asyncio.CancelledError:
            log.append("seen")
        async with asyncio.timeout(None):
            return "ok"

    return asyncio.run(main()), log


def case_await_a_number():
    async def f():
        return await 3

    return asyncio.run(f())


def case_async_for_over_a_list():
    async def f():
        async for x in [1]:
            return x

    return asyncio.run(f())


def case_async_with_a_number():
    async def f():
        async with 3:
            pass

    return asyncio.run(f())


def case_stop_async_iteration_thrown_in():
    class It:
        def __aiter__(self):
            return self

        async def __anext__(self):
            class A:
                def __await__(self):
                    return (yield 1)

            return await A()

    async def f():
        x = 2.0
        async for y in It():
            return "item", y
        return x * 3

    c = f()
    c.send(None)
    try:
        c.throw(StopAsyncIteration)
    except StopIteration as e:
        return e.value


def case_match():
    class P:
        __match_args__ = ("x", "y")

        def __init__(self, x, y):
            self.x, self.y = x, y

    def f(v):
        match v:
            case 0 | 1:
                return "small"
            case int() as n if n > 100:
                return "big", n
            case [a, b, *rest]:
                return "list", a, b, rest
            case {"k": k, **others}:
                return "dict", k, others
            case {"only": 1}:
                return "only"
            case P(0, y):
                return "P0", y
            case P(x=x, y=[z, _]):
                return "P", x, z
            case str(s):
                return "str", s
            case None:
                return "none"
            case float() | complex():
                return "number"
            case _:
                return "other"

    values = [0, 1, 5, 101, [1, 2, 3], (1, 2), [1], {"k": 1, "l": 2}, {"only": 1}, P(0, 1), P(2, [3, 4]), P(5, 5)]
    return [f(v) for v in [*values, "s", None, 1.5, 2j, b"x"]]


def case_match_class_that_fails():
    match 3:
        case Box(1):
            return 1


def case_walrus():
    if (n := len("abc")) > 2 and (m := n * 2):
        return n, m, [k for x in range(4) if (k := x * n) % 2]


def case_f_strings():
    x, w, name = 3.14159, 10, "width"
    return f"{x:.2f} {x!r:>{w}} {x=} {w:{name[0]}>{w}}|" if w < 5 else f"{x:.2f} {x!r:>{w}} {x=} {w!s} {{}} {'q'!a}"


def case_f_string_format_error():
    x = "s"
    return f"{x:d}"


def case_imports():
    import math as m
    from math import sqrt as root

    from collections import abc, deque

    return m.floor(root(10)), abc.__name__, deque([1]).pop()


def case_import_that_fails():
    from math import nothing

    return nothing


def case_lambdas():
    return (lambda x, *y, k=2, **z: (x, y, k, z))(1, 2, 3, k=4, q=5), (lambda: (yield))


def case_annotations():
    def f(x: int, *a: str, k: "list[int]" = 3) -> float:
        y: int = x
        z: undefined_name  # noqa: F821
        return y

    return f.__annotations__, f(2), f.__defaults__, f.__kwdefaults__


def case_docstrings():
    def f():
        """The docstring."""

    def g():
        return "not one"

    return f.__doc__, g.__doc__, f(), g()


def case_names():
    def f(a, b=2):
        return a

    class C:
        def m(self):
            return self

    return f.__name__, f.__qualname__, C.m.__qualname__, C().m.__name__, f.__module__


def case_the_arguments_of_a_function():
    def f(a, b, /, c, *args, d, **kw):
        e = 1
        return a, e

    code = f.__code__
    return code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_varnames[:7], code.co_flags


def case_recursion():
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    def depth(n):
        return depth(n + 1)

    try:
        depth(0)
    except RecursionError as e:
        return fib(12), str(e)[:30]


def case_operator_errors():
    def kind(f):
        try:
            f()
        except Exception as e:
            return type(e).__name__, str(e)

    a, s = 1, "x"
    return [
        kind(f)
        for f in (
            lambda: a + s,
            lambda: s - a,
            lambda: s**a,
            lambda: s @ a,
            lambda: -s,
            lambda: +s,
            lambda: ~1.5,
            lambda: a < s,
            lambda: a in a,
            lambda: a[0],
            lambda: s["k"],
            lambda: s[9],
            lambda: {}[s],
            lambda: a.nothing,
            lambda: a.nothing(),
            lambda: a(),
            lambda: len(a),
            lambda: print >> s,
            lambda: [] + (),
            lambda: 1 << -1,
            lambda: 0**-1,
            lambda: int("x"),
        )
    ]


def case_errors_of_stores():
    out = []
    for statement in ("x[0] = 1", "x.a = 1", "del x[0]", "del x.a", "x += 'a'", "x[0] += 1", "x.real += 1"):
        try:
            exec(statement, {"x": 3})
        except Exception as e:
            out.append((statement, type(e).__name__, str(e)))
    return out


def case_augmented_targets():
    log = []

    class O:
        def __getattr__(self, name):
            log.append(("get", name))
            return 1

        def __setattr__(self, name, v):
            log.append(("set", name, v))

        def __getitem__(self, k):
            log.append(("item", k))
            return 2

        def __setitem__(self, k, v):
            log.append(("store", k, v))

    o = O()
    o.a += 1
    o[1:2] -= 1
    o[o.b] *= 2
    return [(e[0], *map(str, e[1:])) for e in log]


def case_order_of_evaluation():
    log = []

    def f(x):
        log.append(x)
        return x

    f({})[f(1)] = f(2)
    f(Box()).attr = f(3)
    d = {f(4): f(5), **{f(6): 1}}
    f(len)(f("ab"))
    print(f(""), sep=f(""), end=f(""))
    return [str(x) for x in log], d


def case_iteration_of_dict_views():
    d = {"a": 1.0, "b": 2.0}
    total = 0
    for k, v in d.items():
        total += v
        d[k] = v * 2
    for i, (a, b) in enumerate(zip(d, d.values())):
        total += i * b
    return total, d, sorted(d, key=d.get, reverse=True)


def case_dynamic_attributes():
    b = Box()
    setattr(b, "q", 3)
    return getattr(b, "q"), getattr(b, "zz", 9), hasattr(b, "q"), vars(b)


def case_lines_of_tracebacks():
    def a():
        return b()

    def b():
        x = [1, 2, 3]
        return sum(
            y
            for y in
            c(x)
        )

    def c(x):
        for i in x:
            if i > 1:
                raise ValueError(
                    "from c"
                )
            yield i

    return a()


def case_line_of_a_long_expression():
    x = 1
    return (
        x
        + 2
        + (
            x
            / 0
        )
    )


def case_many_names():
    ns = {}
    names = [f"v{i}" for i in range(320)]
    body = "\n".join(f"  {n} = {i} * s" for i, n in enumerate(names))
    exec(f"def f(s):\n{body}\n  return [{', '.join(names)}]", ns)
    return sum(ns["f"](1.5))


def case_many_arguments():
    ns = {}
    names = [f"a{i}" for i in range(300)]
    exec(f"def f({', '.join(names)}): return {' + '.join(names)}\ndef g(*x): return f(*x), f({', '.join('x[%d]' % i for i in range(300))})", ns)
    return ns["g"](*range(300))


def case_long_jumps():
    ns = {}
    body = "\n".join(f"      x = x + {i} * y[0].real" for i in range(400))
    exec(f"def f(x, y):\n  for i in y:\n    if i:\n{body}\n    else:\n      continue\n  while x < 0:\n    if x:\n{body}\n  return x", ns)
    return ns["f"](1.5, [1, 0, 2])


def case_deep_nesting():
    return ((((((1 + (2 * (3 + (4 * (5 + (6 * (7 + 8)))))))))))), [[[[[1]]]]][0][0][0][0][0]


def case_dead_code():
    def f(x):
        return x
        x + 1

    while 0:
        pass
    if False:
        return 1
    return f(2)


def case_slots_and_descriptors():
    class D:
        def __get__(self, o, t=None):
            return "got", o is None

        def __set__(self, o, v):
            o.__dict__["stored"] = v

    class C:
        d = D()

    class S:
        __slots__ = ("a",)

    c, s = C(), S()
    c.d = 5
    s.a = 1
    try:
        s.b = 2
    except AttributeError as e:
        return c.d, C.d, c.stored, s.a, str(e)
