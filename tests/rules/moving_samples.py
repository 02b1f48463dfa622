"""Programs for every rule without a derivative of its own: functions that move references, and those of no tangent.

A method is called on an instance that holds the differentiated number, and the numbers in what comes out are returned:
so it is seen that a derivative passes through what moves, and stops where it should.
"""

import asyncio
import atexit
import bisect
import collections
import contextvars
import functools
import gc
import heapq
import itertools
import math
import operator
import queue
import random
import re
import select
import sys
import threading
import time
import types
import typing
import weakref
from decimal import Decimal
from fractions import Fraction

import numpy as np
from tests.rules.samples import Celsius, Point, at, digest, program

X = 1.6


class Holder:
    __slots__ = ("__weakref__", "x")

    def __init__(self, x):
        self.x = x

    def get(self):
        return self.x


KEPT = Holder(2.0)
TEE_BUFFER = getattr(itertools, "_tee_dataobject", None)  # not since CPython 3.14
BUFFERS = iter([TEE_BUFFER(iter([1.0, 2.0]), [1.0], None) for _ in range(200)] if TEE_BUFFER else [])
TOTALS = iter([itertools.accumulate([1.0, 2.0]) for _ in range(500)])


async def _numbers(x):
    yield x
    yield 2 * x


@types.coroutine
def _waiting(x):
    return (yield x)


def teed(x):
    """The buffer that iterators made by tee share, made by C code."""
    return next(BUFFERS)


async def _awaiting(x):
    return 3 * await _waiting(x)


def _counted(x):
    received = yield x
    while received is not None:
        received = yield received * x


def _module(x):
    module = types.ModuleType("m")
    module.x = x
    return module


def _cell(x):
    return (lambda: x).__closure__[0]


def _match(x):
    return re.match("(a)(b)", "abc")


def _started(x):
    """An anext awaitable, an asend awaitable, ..."""
    return _numbers(x)


# How to make an instance of a type that holds x.
MADE = {
    list: lambda x: [x, 2.0, 3 * x],
    tuple: lambda x: (x, 2.0, 3 * x),
    dict: lambda x: {"a": x, "b": 2.0},
    set: lambda x: {x, 2.0},
    frozenset: lambda x: frozenset((x, 2.0)),
    collections.deque: lambda x: collections.deque([x, 2.0, 3 * x]),
    collections.OrderedDict: lambda x: collections.OrderedDict(a=x, b=2.0),
    collections.defaultdict: lambda x: collections.defaultdict(lambda: 7.0, a=x, b=2.0),
    types.MappingProxyType: lambda x: types.MappingProxyType({"a": x, "b": 2.0}),
    types.SimpleNamespace: lambda x: types.SimpleNamespace(a=x, b=2.0),
    range: lambda x: range(1, 4),
    slice: lambda x: slice(1, 3),
    str: lambda x: "ab cd",
    type(iter([])): lambda x: iter([x, 2.0, 3 * x]),
    type(reversed([])): lambda x: reversed([x, 2.0, 3 * x]),
    type(iter(())): lambda x: iter((x, 2.0, 3 * x)),
    type(iter(set())): lambda x: iter({x, x}),
    type(iter("")): lambda x: iter("abc"),
    type(iter(range(0))): lambda x: iter(range(3)),
    type(iter(range(1 << 70))): lambda x: iter(range(1 << 70)),
    type(iter(b"")): lambda x: iter(b"abc"),
    type(iter(bytearray())): lambda x: iter(bytearray(b"abc")),
    type(iter({})): lambda x: iter({x: 1}),
    type(reversed({})): lambda x: reversed({x: 1}),
    type(iter({}.values())): lambda x: iter({"a": x}.values()),
    type(reversed({}.values())): lambda x: reversed({"a": x}.values()),
    type(iter({}.items())): lambda x: iter({"a": x}.items()),
    type(reversed({}.items())): lambda x: reversed({"a": x}.items()),
    type({}.keys()): lambda x: {x: 1, 2.0: 2}.keys(),
    type({}.values()): lambda x: {"a": x, "b": 2.0}.values(),
    type({}.items()): lambda x: {"a": x, "b": 2.0}.items(),
    type(iter(collections.OrderedDict())): lambda x: iter(collections.OrderedDict(a=x).values()),
    type(collections.OrderedDict().keys()): lambda x: collections.OrderedDict([(x, 1)]).keys(),
    type(collections.OrderedDict().values()): lambda x: collections.OrderedDict(a=x).values(),
    type(collections.OrderedDict().items()): lambda x: collections.OrderedDict(a=x).items(),
    type(iter(collections.deque())): lambda x: iter(collections.deque([x, 2.0])),
    type(reversed(collections.deque())): lambda x: reversed(collections.deque([x, 2.0])),
    type(iter(lambda: 0, 0)): lambda x: iter(lambda: x, None),
    types.GeneratorType: _counted,
    enumerate: lambda x: enumerate([x, 2.0]),
    zip: lambda x: zip([x, 2.0], [3.0, x]),
    map: lambda x: map(lambda y: y * x, [x, 2.0]),
    filter: lambda x: filter(None, [x, 2.0]),
    reversed: lambda x: reversed("abc"),
    itertools.accumulate: lambda x: next(TOTALS),  # made by C code: where a derivative is taken a generator stands in
    itertools.combinations: lambda x: itertools.combinations([x, 2.0, 3.0], 2),
    itertools.combinations_with_replacement: lambda x: itertools.combinations_with_replacement([x, 2.0], 2),
    itertools.cycle: lambda x: itertools.cycle([x, 2.0]),
    itertools.dropwhile: lambda x: itertools.dropwhile(lambda y: y > 2.0, [x, 3.0]),
    itertools.takewhile: lambda x: itertools.takewhile(lambda y: y < 2.0, [x, 3.0]),
    itertools.islice: lambda x: itertools.islice([x, 2.0, 3.0], 2),
    itertools.starmap: lambda x: itertools.starmap(operator.mul, [(x, x), (2.0, x)]),
    itertools.chain: lambda x: itertools.chain([x], [2.0]),
    itertools.compress: lambda x: itertools.compress([x, 2.0], [1, 1]),
    itertools.filterfalse: lambda x: itertools.filterfalse(lambda y: y > 2.0, [x, 3.0]),
    itertools.count: lambda x: itertools.count(1),
    itertools.zip_longest: lambda x: itertools.zip_longest([x], [2.0, x], fillvalue=x),
    itertools.pairwise: lambda x: itertools.pairwise([x, 2.0, 3.0]),
    **({itertools.batched: lambda x: itertools.batched([x, 2.0, x], 2)} if hasattr(itertools, "batched") else {}),
    itertools.permutations: lambda x: itertools.permutations([x, 2.0]),
    itertools.product: lambda x: itertools.product([x, 2.0], [3.0]),
    itertools.repeat: lambda x: itertools.repeat(x, 3),
    itertools.groupby: lambda x: itertools.groupby([x, x, 2.0]),
    type(next(itertools.groupby([1]))[1]): lambda x: next(itertools.groupby([x, x, 2.0], key=lambda y: 0))[1],
    type(itertools.tee([])[0]): lambda x: itertools.tee([x, 2.0])[0],
    TEE_BUFFER: teed,
    functools.partial: lambda x: functools.partial(operator.mul, x),
    staticmethod: lambda x: staticmethod(lambda: x),
    classmethod: lambda x: classmethod(lambda cls: x),
    property: lambda x: property(lambda self: x),
    types.FunctionType: lambda x: lambda: x,
    types.MethodType: lambda x: Holder(x).get,
    types.CellType: _cell,
    types.ModuleType: _module,
    types.GenericAlias: lambda x: list[float],
    types.UnionType: lambda x: int | float,
    types.GetSetDescriptorType: lambda x: types.FunctionType.__dict__["__code__"],
    types.MemberDescriptorType: lambda x: Holder.__dict__["x"],
    types.CoroutineType: _awaiting,
    types.AsyncGeneratorType: _numbers,
    weakref.ReferenceType: lambda x: weakref.ref(KEPT),
    contextvars.ContextVar: lambda x: contextvars.ContextVar("v", default=x),
    contextvars.Token: lambda x: contextvars.ContextVar("v").set(x),
    contextvars.Context: lambda x: contextvars.copy_context(),
    type(queue.SimpleQueue()): lambda x: _queued(x),
    type(threading.Lock()): lambda x: threading.Lock(),
    type(threading.RLock()): lambda x: threading.RLock(),
    threading.local: lambda x: _local(x),
    re.Pattern: lambda x: re.compile("(a)(b)"),
    re.Match: _match,
    object: Holder,
    type: lambda x: Holder,
    type(functools.cmp_to_key(min)): lambda x: functools.cmp_to_key(lambda a, b: (a > b) - (a < b)),
    float: lambda x: x,
    complex: lambda x: x + 2j,
    np.ndarray: lambda x: np.array([x, -2.0 * x, 3.5]),
    np.generic: np.float64,
    Decimal: Decimal,
    **{t: t for t in (np.half, np.single, np.double, np.longdouble)},
    **{t: (lambda x, t=t: t(x + 2j)) for t in (np.csingle, np.cdouble, np.clongdouble)},
    Fraction: lambda x: x,
    random.Random: lambda x: random.Random(5),
    select.epoll: lambda x: select.epoll(),
}

def _queued(x):
    q = queue.SimpleQueue()
    q.put(x)
    return q


def _local(x):
    local = threading.local()
    local.x = x
    return local


def other(cls, x):
    """An operand for a method of two instances."""
    return MADE[cls](x)


# Arguments by the method's name; a callable makes them of (class, x).
BY_NAME = {
    **{f"__{name}__": lambda cls, x: (other(cls, x + 1),) for name in ("eq", "ne", "lt", "le", "gt", "ge", "or", "ror", "ior", "and", "rand", "xor", "rxor", "sub", "rsub", "isub", "iand", "ixor", "add", "iadd")},
    "__setstate__": lambda cls, x: (3.0,) if cls is itertools.accumulate else (),
    "__getattribute__": lambda cls, x: ("__class__",),
    "__setattr__": lambda cls, x: ("x", x),
    "__delattr__": lambda cls, x: ("x",),
    "__getitem__": lambda cls, x: ("a" if hasattr(cls, "keys") else 0,),
    "__setitem__": lambda cls, x: ("a" if hasattr(cls, "keys") else 0, 2 * x),
    "__delitem__": lambda cls, x: ("a" if hasattr(cls, "keys") else 0,),
    "__contains__": lambda cls, x: (2.0,),
    "__mul__": lambda cls, x: (2,),
    "__rmul__": lambda cls, x: (2,),
    "__imul__": lambda cls, x: (2,),
    "__reduce_ex__": lambda cls, x: (2,),
    "__class_getitem__": lambda cls, x: (int,),
    "__init__": lambda cls, x: ([x, 2.0],) if cls in (list, set, collections.deque) else ({"b": x},) if cls in (dict, collections.OrderedDict) else (),
    "__deepcopy__": lambda cls, x: ({},),
    "__get__": lambda cls, x: (Holder(x), Holder),
    "__set__": lambda cls, x: (Holder(x), 2 * x),
    "__delete__": lambda cls, x: (Holder(x),),
    "__instancecheck__": lambda cls, x: (Holder(x),),
    "__subclasscheck__": lambda cls, x: (Holder,),
    "__mro_entries__": lambda cls, x: ((object,),),
    "__set_name__": lambda cls, x: (Holder, "p"),
    "__missing__": lambda cls, x: ("c",),
    "__exit__": lambda cls, x: (None, None, None),
    "__floordiv__": lambda cls, x: (cls(0.7) if cls not in (np.ndarray, np.generic) else 0.7,),
    "__rfloordiv__": lambda cls, x: (cls(7.3) if cls not in (np.ndarray, np.generic) else 7.3,),
    **dict.fromkeys(("append", "add", "appendleft", "put", "put_nowait"), lambda cls, x: (2 * x,)),
    **dict.fromkeys(("extend", "extendleft", "union", "difference", "intersection", "symmetric_difference", "update", "isdisjoint", "issubset", "issuperset", "difference_update", "intersection_update", "symmetric_difference_update"), lambda cls, x: ({"b": x} if hasattr(cls, "keys") else [x, 2.0],)),
    "insert": lambda cls, x: (1, 2 * x),
    **dict.fromkeys(("remove", "discard", "count", "index"), lambda cls, x: (2.0,) if cls is not range else (2,)),
    **dict.fromkeys(("get", "pop", "setdefault"), lambda cls, x: ("a",) if hasattr(cls, "keys") else ()),
    "fromkeys": lambda cls, x: (["a"], x),
    "move_to_end": lambda cls, x: ("a",),
    "rotate": lambda cls, x: (1,),
    "send": lambda cls, x: (None,),
    "throw": lambda cls, x: (ValueError("thrown"),),
    "asend": lambda cls, x: (None,),
    "athrow": lambda cls, x: (ValueError("thrown"),),
    "indices": lambda cls, x: (5,),
    "from_iterable": lambda cls, x: ([[x], [2.0]],),
    "with_traceback": lambda cls, x: (None,),
    "add_note": lambda cls, x: ("note",),
    **dict.fromkeys(("getter", "setter", "deleter"), lambda cls, x: (lambda self: x,)),
    "acquire": lambda cls, x: (False,),
    **dict.fromkeys(("match", "fullmatch", "search", "findall", "split", "finditer", "scanner"), lambda cls, x: ("ab",)),
    **dict.fromkeys(("sub", "subn"), lambda cls, x: ("c", "ab")),
    "expand": lambda cls, x: (r"\1",),
    "set": lambda cls, x: (2 * x,),
}  # fmt: skip

STR_ARGS = {
    "replace": ("a", "b"), "join": (["x", "y"],), "center": (9,), "count": ("a",), "find": ("b",), "partition": (" ",), "index": ("b",), "ljust": (9,), "rfind": ("b",),
    "rindex": ("b",), "rjust": (9,), "rpartition": (" ",), "translate": ({97: "z"},), "startswith": ("a",), "endswith": ("d",), "removeprefix": ("a",), "removesuffix": ("d",), "zfill": (9,),
    "__getitem__": (1,), "__contains__": ("a",),
}  # fmt: skip


VARYING = ("__hash__", "__sizeof__", "__array_priority__", "get_name")  # from call to call


def by_method(cls, function, name):
    """A program that calls a method on an instance of `cls` that holds x."""
    make = MADE[cls]
    arguments = BY_NAME.get(name, lambda cls, x: ())
    if cls is str and name in STR_ARGS:
        arguments = lambda cls, x: STR_ARGS[name]  # noqa: E731

    def call(x):
        o = make(x)
        y = function(o, *arguments(cls, x))
        if name in VARYING or cls is contextvars.Context:  # the level is kept in the context
            return 2 * x
        return digest(y), digest(o) if not hasattr(cls, "__next__") else None

    return call


def attribute_of(cls, name):
    make = MADE[cls]

    def read(x):
        return digest(getattr(make(x), name))

    return read


# -- functions and classes, by hand ------------------------------------------------------------------------------------

TABLE = {}


def given(functions, *programs):
    for function in functions if isinstance(functions, (list, tuple)) else (functions,):
        TABLE.setdefault(function, []).extend(programs)


A, M = np.array([0.6, -1.3, 2.2]), np.array([[1.1, 2.3, 0.4], [-1.2, 3.1, 0.7]])
Wanted = type("Wanted", (Exception,), {})

# Numbers without tangent: of a number, of an array, of two
ONE = [np.ceil, np.floor, np.trunc, np.rint, np.spacing, np.isfinite, np.isinf, np.isnan, np.signbit, np.logical_not, np.shape, np.ndim, np.size, np.iscomplexobj, np.isrealobj, np.isscalar, np.isfortran,
       np.argmax, np.argmin, np.argsort, np.nonzero, np.count_nonzero, np.nanargmax, np.nanargmin, np.argwhere, np.flatnonzero, np.iscomplex, np.isreal, np.empty_like, np.zeros_like, np.ones_like, np.min_scalar_type]
for _f in ONE:
    given(_f, program(lambda a, f=_f: (digest(f(a)) if f is not np.empty_like else f(a).shape, a * 2), A), program(lambda a, f=_f: (digest(f(a)) if f is not np.empty_like else f(a).shape, a * 2), M))
for _f in (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.logical_and, np.logical_or, np.logical_xor, np.floor_divide, np.allclose, np.array_equal, np.array_equiv, np.isin, np.shares_memory, np.may_share_memory, np.result_type):
    given(_f, at(A, A * 0.71), program(lambda a, x, f=_f: a * x * (f(a, 0.71 * a) if f is not np.result_type else 1.0), A, 1.5))
for _f in (np.gcd, np.lcm, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift):
    given(_f, program(lambda a, f=_f: a * f(np.array([4, 6, 9]), 2), A))
for _f in (np.invert, getattr(np, "bitwise_count", np.invert)):
    given(_f, program(lambda a, f=_f: a * f(np.array([4, 6, 9])), A))
if hasattr(np, "in1d") and np.__version__ < "2":
    given(np.in1d, at(A, A * 0.71))
    given([np.alltrue, np.sometrue], program(lambda a: a * np.alltrue(a > 9), A))
given(np.isnat, program(lambda x: x * np.isnat(np.datetime64("NaT")), X))
given(np.digitize, program(lambda a: a * np.digitize(a, np.array([-2.0, 0.0, 1.0])), A))
given(np.searchsorted, program(lambda a: a * np.searchsorted(np.array([-2.0, 0.0, 1.0]), a), A))
given(np.unravel_index, program(lambda x: x * np.unravel_index(5, (2, 3))[1], X))
given(np.ravel_multi_index, program(lambda x: x * np.ravel_multi_index((1, 2), (2, 3)), X))
given(np.indices, program(lambda x: x * np.indices((2, 3)), X))
given([np.diag_indices, np.tril_indices, np.triu_indices], program(lambda x: x * np.diag_indices(3)[0], X))
for _f in (np.diag_indices, np.tril_indices, np.triu_indices):
    TABLE[_f] = [program(lambda x, f=_f: x * f(3)[0], X)]
given(np.diag_indices_from, program(lambda a: a * np.diag_indices_from(a)[0], M[:, :2]))
for _f in (np.tril_indices_from, np.triu_indices_from):
    given(_f, program(lambda a, f=_f: a[f(a)], M[:, :2]))
given(np.mask_indices, program(lambda x: x * np.mask_indices(3, np.triu)[0], X))
given(np.empty, program(lambda x: x * np.empty(3).size, X))
for _f in (np.zeros, np.ones, np.eye, np.identity, np.tri):
    given(_f, program(lambda x, f=_f: x * f(3), X))
for _f in (np.bartlett, np.blackman, np.hamming, np.hanning):
    given(_f, program(lambda x, f=_f: x * f(4), X))
given(np.can_cast, program(lambda x: x * np.can_cast(float, complex), X))
given(np.common_type, program(lambda a: a * (np.common_type(a) is np.float64), A))
given(np.broadcast_shapes, program(lambda x: x * np.broadcast_shapes((3, 1), (2,))[0], X))
given([np.promote_types], program(lambda x: x * np.promote_types(float, int).itemsize, X))
given(np.mintypecode, program(lambda x: x * len(np.mintypecode("df")), X))
given(np.argpartition, program(lambda a: a[np.argpartition(a, 1)], A))
given(np.lexsort, program(lambda a: a[np.lexsort((a, a))], A))
given(np.linalg.matrix_rank, program(lambda a: a * np.linalg.matrix_rank(a), M))
given([np.ndindex], program(lambda x: [x * i for i, in np.ndindex(3)], X))
given(np.broadcast, program(lambda a: a * np.broadcast(np.zeros((2, 1)), np.zeros(3)).size, A))
for _t in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.longlong, np.ulonglong):
    given(_t, program(lambda x, t=_t: x * t(x), X), program(lambda a, t=_t: a * t(np.abs(a)), A))
given(np.fromfile, program(lambda x: np.fromfile("/no/such/file") * x, X))
for _f in (math.ceil, math.floor, math.trunc, math.isfinite, math.isinf, math.isnan, round, bool, int, callable, math.ulp):
    given(_f, program(lambda x, f=_f: x * f(x), X))
for _f in (math.gcd, math.lcm, math.comb, math.perm):
    given(_f, program(lambda x, f=_f: x * f(6, 4), X))
for _f in (math.isqrt, math.factorial):
    given(_f, program(lambda x, f=_f: x * f(6), X))
given(np.isclose, program(lambda a: a * np.isclose(a, 2 * a), A))
given(np.bool_, program(lambda a: a * np.bool_(a[0]), A))
given(vars(str)["maketrans"], program(lambda x: (str.maketrans("a", "b"), 2 * x)[1], X))
given(vars(random.SystemRandom)["random"], program(lambda x: (random.SystemRandom().random() < 2) * x, X))
given(math.isclose, program(lambda x: x * math.isclose(x, 1.5), X))
import cmath  # noqa: E402

given(cmath.isclose, program(lambda x: x * cmath.isclose(x, 1.5), X))
for _f in (cmath.isfinite, cmath.isinf, cmath.isnan):
    given(_f, program(lambda x, f=_f: x * f(x), X))
given(operator.floordiv, program(lambda x, a: (x // 0.7 * x, a // 0.7 * x), X, A))
given([id], program(lambda x: x * (id(x) > 0), X))
given(hash, program(lambda x: x * (hash(x) == hash(1.5)), X))
given(isinstance, program(lambda x: x * isinstance(x, float), X))
given(issubclass, program(lambda x: x * issubclass(type(x), float), X))
given(type, program(lambda x: x * (type(x) is float), X))
given([sys.getsizeof, sys.getrefcount], program(lambda x: x * (sys.getsizeof(x) > 0), X))
for _f in (sys.getsizeof, sys.getrefcount):
    TABLE[_f] = [program(lambda x, f=_f: x * (f([x]) > 0), X)]
given(gc.is_tracked, program(lambda x: x * gc.is_tracked([x]), X))
given(gc.get_referents, program(lambda x: x * len(gc.get_referents([1, 2])), X))
given(gc.get_referrers, program(lambda x: x * (len(gc.get_referrers(KEPT)) >= 0), X))
given(time.sleep, program(lambda x: (time.sleep(x * 0), x)[1], X))
import abc  # noqa: E402
import posix  # noqa: E402


class Abstract(abc.ABC):
    @abc.abstractmethod
    def f(self): ...


given(abc._abc_instancecheck, program(lambda x: x * abc._abc_instancecheck(Abstract, x), X))
given(abc._abc_subclasscheck, program(lambda x: x * abc._abc_subclasscheck(Abstract, float), X))
given(abc._abc_register, program(lambda x: (type("Late", (abc.ABC,), {}).register(int), x)[1], X))
given(abc._abc_init, program(lambda x: x * len(type("Late", (abc.ABC,), {}).__mro__), X))
given(posix.urandom, program(lambda x: x * len(posix.urandom(3)), X))
given(select.select, program(lambda x: x * len(select.select([], [], [], 0)), X))
given(select.poll, program(lambda x: x * len(select.poll().poll(0)), X))
given(select.epoll.close, program(lambda x: (select.epoll.close(select.epoll()), x)[1], X))


def with_epoll(f):
    def call(x):
        epoll = select.epoll()
        try:
            return x * (f(epoll) is not None)
        finally:
            epoll.close()

    return call


for _name, _call in {
    "fileno": lambda e: select.epoll.fileno(e), "poll": lambda e: select.epoll.poll(e, 0), "__enter__": lambda e: select.epoll.__enter__(e), "__exit__": lambda e: select.epoll.__exit__(e, None, None, None),
    "register": lambda e: select.epoll.register(e, 0), "modify": lambda e: select.epoll.modify(e, 0, 1), "unregister": lambda e: select.epoll.unregister(e, 0),
}.items():  # fmt: skip
    given(vars(select.epoll)[_name], program(with_epoll(_call), X))
for _name, _args in {"random": (), "getrandbits": (3,), "seed": (5,), "getstate": (), "__init__": ()}.items():
    _f = vars(random.Random.__mro__[1])[_name]
    given(_f, program(lambda x, f=_f, args=_args: (f(random.Random(5), *args) is None, x)[1], X))
given(vars(random.Random.__mro__[1])["setstate"], program(lambda x: (random.Random(5).setstate(random.Random(6).getstate()), x)[1], X))
given(random.Random.__mro__[1].__new__, program(lambda x: x * isinstance(random.Random.__new__(random.Random), random.Random), X))
given(random.random, program(lambda x: x * random.random(), X))
R = np.random
for _name, _args in {"integers": (5,), "bytes": (3,), "spawn": (2,), "standard_cauchy": ()}.items():
    if hasattr(R.Generator, _name):
        given(vars(R.Generator)[_name], program(lambda x, n=_name, a=_args: (digest(getattr(R.Generator, n)(R.default_rng(5), *a)), x), X))
for _name, _args in {"bytes": (3,), "rand": (2,), "randn": (2,), "randint": (5,), "random_sample": (2,), "random_integers": (5,), "seed": (5,), "standard_cauchy": (), "tomaxint": ()}.items():
    if hasattr(R.RandomState, _name):
        given(vars(R.RandomState)[_name], program(lambda x, n=_name, a=_args: (digest(getattr(R.RandomState, n)(R.RandomState(5), *a)), x), X))
given(vars(R.RandomState)["get_state"], program(lambda x: x * len(R.RandomState(5).get_state()), X))
given(vars(R.RandomState)["set_state"], program(lambda x: (R.RandomState(5).set_state(R.RandomState(6).get_state()), x)[1], X))

# Builtins and itertools that hand elements on
given([list, tuple, set, frozenset, collections.deque], program(lambda x: digest(list([x, 2.0])), X))
for _t in (list, tuple, set, frozenset, collections.deque):
    TABLE[_t] = [program(lambda x, t=_t: digest(list(t([x, 2.0]))), X), program(lambda a, t=_t: sorted(t(a)), A)]
for _t in (dict, collections.OrderedDict):
    given(_t, program(lambda x, t=_t: digest(t({"a": x}, b=2 * x)), X), program(lambda x, t=_t: digest(t([("a", x)])), X))
given(collections.defaultdict, program(lambda x: collections.defaultdict(lambda: x)["a"] * x, X))
given(map, program(lambda x: list(map(lambda y: y * x, [x, 2.0])), X), program(lambda a: list(map(math.sin, a)), A))
given(filter, program(lambda x: list(filter(lambda y: y > 1, [x, 0.5])), X))
given(zip, program(lambda x: [p * q for p, q in zip([x, 2.0], (3.0, x), strict=True)], X))
given(enumerate, program(lambda x: [i * y for i, y in enumerate([x, x], 1)], X))
for _t, _make in MADE.items():
    if isinstance(_t, type) and _t.__module__ == "itertools" and not _t.__name__.startswith("_"):
        given(_t, program(lambda x, m=_make: digest(m(x)), X))
given(itertools.chain.from_iterable, program(lambda x: digest(itertools.chain.from_iterable([[x], (2.0, x)])), X))
given(itertools.tee, program(lambda x: [digest(part) for part in itertools.tee([x, 2 * x])], X))
if hasattr(itertools, "batched"):
    given(itertools.batched, program(lambda x: digest(itertools.batched([x, 2.0, x], 2)), X))
given(collections._count_elements, program(lambda x: (lambda d: (collections._count_elements(d, [x, 2.0, x]), digest(d), x))({}), X))
for _name in ("heapify", "_heapify_max"):
    if isinstance(getattr(heapq, _name, None), types.BuiltinFunctionType):
        given(getattr(heapq, _name), program(lambda x, f=getattr(heapq, _name): (lambda h: (f(h), h))([3.0, x, 2.0]), X))
for _name in ("heappop", "_heappop_max", "heappop_max"):
    if isinstance(getattr(heapq, _name, None), types.BuiltinFunctionType):
        given(getattr(heapq, _name), program(lambda x, f=getattr(heapq, _name): (lambda h: (f(h), h))([x, 2.0, 3.0]), X))
for _name in ("heappush", "heappushpop", "heapreplace", "_heapreplace_max", "heappush_max", "heappushpop_max", "heapreplace_max", "heapify_max"):
    if isinstance(getattr(heapq, _name, None), types.BuiltinFunctionType):
        _more = () if _name == "heapify_max" else (2.5,)
        given(getattr(heapq, _name), program(lambda x, f=getattr(heapq, _name), m=_more: (lambda h: (f(h, *[x * y for y in m]), h))([x, 2.0, 3.0]), X))
given(iter, program(lambda x: list(iter([x, 2 * x])), X), program(lambda x: list(itertools.islice(iter(lambda: x, None), 2)), X))
given(sorted, program(lambda xs: sorted(xs, key=lambda y: -y), [1.5, 0.5, 2.5]), program(lambda a: sorted(a), A))
given([min, max], program(lambda x: min([x, 2 * x]), X))
for _f in (min, max):
    TABLE[_f] = [program(lambda xs, f=_f: f(xs), [1.5, 0.5, 2.5]), program(lambda x, f=_f: f(x, 1.2 * x, key=lambda y: -y), X), program(lambda a, f=_f: f(a), A)]
given([any, all], program(lambda x: x * any([x, 0.0]), X))
for _f in (any, all):
    TABLE[_f] = [program(lambda x, f=_f: x * f([x, 0.0]), X), program(lambda a, f=_f: a * f(y > 1 for y in a), A)]
given(functools.cmp_to_key, program(lambda xs: sorted(xs, key=functools.cmp_to_key(lambda a, b: (a > b) - (a < b))), [1.5, 0.5]))
given(type(functools.cmp_to_key(min)).__call__, program(lambda x: (lambda k: digest(sorted([2 * x, x], key=k)))(functools.cmp_to_key(lambda a, b: (a > b) - (a < b))), X))
given(
    functools._lru_cache_wrapper,
    program(lambda x: functools.lru_cache(maxsize=None)(lambda y: y * x)(3 * x), X),
    program(lambda x: (lambda f: f(2) + f(2) * f(3))(functools.lru_cache(lambda n: n * x)), X),
    program(lambda x: type(functools.cache(lambda y: y * x)).__name__ == "_lru_cache_wrapper" and x, X),
    program(lambda a: (lambda f: [f(k) for k in (0, 1, 0)])(functools.cache(lambda k: a[k] * a[0])), A),
)
given(len, program(lambda x: x * len([x, x]), X))
given(next, program(lambda x: next(iter([x, 2.0])) * x, X), program(lambda x: next(iter([]), x), X))
given([aiter, anext], program(lambda x: x, X))


def run(coroutine):
    """Drive a coroutine that waits for nothing."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration as done:
        return done.value


async def _first(x):
    return await anext(aiter(_numbers(x))) * x


async def _both(x):
    numbers = _numbers(x)
    return await type(numbers).__anext__(numbers) + await type(numbers).asend(numbers, None)


for _f in (aiter, anext):
    TABLE[_f] = [program(lambda x: run(_first(x)), X)]

# Objects that are made and asked
given(slice, program(lambda x: [x, 2 * x, 3.0][slice(0, 2)], X))
given(range, program(lambda x: [x * i for i in range(3)], X))
given(types.MappingProxyType, program(lambda x: types.MappingProxyType({"a": x})["a"] * 2, X))
given(types.SimpleNamespace, program(lambda x: types.SimpleNamespace(a=x).a * 2, X))
given(property, program(lambda x: type("P", (), {"p": property(lambda self: x)})().p * 2, X))
given(staticmethod, program(lambda x: type("P", (), {"p": staticmethod(lambda: x)})().p() * 2, X))
given(classmethod, program(lambda x: type("P", (), {"p": classmethod(lambda cls: x)})().p() * 2, X))
given(object, program(lambda x: (object(), x)[1], X))
given(types.MethodType, program(lambda x: types.MethodType(lambda self: self.x * x, Holder(x))(), X))
given(types.CellType, program(lambda x: types.CellType(x).cell_contents * 2, X))
given(types.FunctionType, program(lambda x: types.FunctionType((lambda y: y * y).__code__, {})(x), X))
given(types.ModuleType, program(lambda x: _module(x).x * 2, X))
given(weakref.ReferenceType, program(lambda x: (lambda o: weakref.ReferenceType(o)().x * x)(Holder(x)), X))
given([weakref.proxy], program(lambda x: (lambda o: weakref.proxy(o).x * x)(Holder(x)), X))
given([weakref.getweakrefcount, weakref.getweakrefs], program(lambda x: x, X))
for _f in (weakref.getweakrefcount, weakref.getweakrefs):
    TABLE[_f] = [program(lambda x, f=_f: (f(Holder(x)) is None, x)[1], X)]
given(contextvars.ContextVar, program(lambda x: contextvars.ContextVar("v", default=x).get() * 2, X))
given(contextvars.copy_context, program(lambda x: (contextvars.copy_context(), x)[1], X))
given(type(queue.SimpleQueue()), program(lambda x: _queued(x).get() * 2, X))
given([threading.RLock, type(threading.RLock()), type(threading.Lock()), threading.Lock], program(lambda x: x, X))
import _thread  # noqa: E402

for _f in {threading.RLock, type(threading.RLock()), type(threading.Lock()), threading.Lock, _thread.allocate_lock, _thread.allocate, _thread.RLock, _thread.LockType}:

    def _locked(x, f=_f):
        lock = f()
        with lock:
            return 2 * x

    TABLE[_f] = [program(_locked, X)]
given([_thread._local, threading.local], program(lambda x: _local(x).x * 2, X))
for _f in (_thread.get_ident, _thread.get_native_id, _thread._count, _thread.stack_size):
    given(_f, program(lambda x, f=_f: (f() is None, x)[1], X))
if hasattr(_thread, "_set_sentinel"):
    given(_thread._set_sentinel, program(lambda x: x, X))


def _threaded(x, start=_thread.start_new_thread):
    found, done = [], threading.Event()

    def work():
        found.append(x * x)
        done.set()

    start(work, ())
    done.wait(10)
    return found[0]


for _f in (_thread.start_new_thread, _thread.start_new):
    given(_f, program(lambda x, f=_f: _threaded(x, f), X))
given(operator.itemgetter, program(lambda x: operator.itemgetter(1)([x, 2 * x]), X))
given(operator.attrgetter, program(lambda x: operator.attrgetter("x")(Holder(x)), X))
given(operator.methodcaller, program(lambda x: operator.methodcaller("get")(Holder(x)), X))
for _f in (operator.is_, operator.is_not, operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt):
    given(_f, program(lambda x, f=_f: x * f(x, 2.0), X))
for _f in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift):
    given(_f, program(lambda x, f=_f: x * f(6, 1), X))
for _f in (operator.not_, operator.truth, operator.index, operator.invert):
    given(_f, program(lambda x, f=_f: x * f(6), X))
given(operator.length_hint, program(lambda x: x * operator.length_hint([x, x]), X))
given(np.ndarray, program(lambda x: np.ndarray((2,), buffer=np.zeros(2)) * x, X))
given(np.frombuffer, program(lambda x: np.frombuffer(np.arange(3.0)) * x, X))
given(np.lib.stride_tricks.as_strided, program(lambda a: np.lib.stride_tricks.as_strided(a, (2,), (16,)) * 2, A))
for _name, _args in {"transpose": (1, 0), "swapaxes": (0, 1), "squeeze": (), "getfield": (np.float64,), "setflags": ()}.items():
    given(vars(np.ndarray)[_name], program(lambda a, n=_name, args=_args: (lambda v: a * 2 if v is None else v * 2)(getattr(np.ndarray, n)(a * 1, *args)), M))
for _name in ("T", "mT", "real", "base", "flat", "imag"):
    if _name in vars(np.ndarray):
        given(vars(np.ndarray)[_name], program(lambda a, n=_name: digest(getattr(a * 1, n)), M))
for _name in ("data", "__array_interface__", "__array_struct__"):
    given(vars(np.ndarray)[_name], program(lambda a, n=_name: (type(getattr(a * 1, n)).__name__, a * 2), M))
given(typing._idfunc if isinstance(getattr(typing, "_idfunc", None), types.BuiltinFunctionType) else len, program(lambda x: typing.NewType("Metre", float)(x) * x, X))
given(object.__new__, program(lambda x: x * isinstance(object.__new__(Holder), Holder), X))
given([object.__init_subclass__, object.__subclasshook__], program(lambda x: (type("Sub", (), {}), x)[1], X))
given(type.__new__, program(lambda x: type.__new__(type, "C", (), {"x": x}).x * 2, X))
given(type.__prepare__, program(lambda x: (type.__prepare__("C", ()), x)[1], X))
given(sys.set_asyncgen_hooks, program(lambda x: (sys.set_asyncgen_hooks(*sys.get_asyncgen_hooks()), x)[1], X))
given(sys.get_asyncgen_hooks, program(lambda x: (sys.get_asyncgen_hooks(), x)[1], X))
given(atexit.register, program(lambda x: (atexit.unregister(atexit.register(Holder)), x)[1], X))
given(atexit.unregister, program(lambda x: (atexit.unregister(Holder), x)[1], X))
given(atexit._ncallbacks, program(lambda x: (atexit._ncallbacks() >= 0) * x, X))
import _signal  # noqa: E402

for _name, _args in {"alarm": (0,), "setitimer": (0, 0.0), "getitimer": (0,), "strsignal": (2,), "getsignal": (2,), "sigpending": (), "valid_signals": (), "pthread_sigmask": (_signal.SIG_BLOCK, ()), "sigtimedwait": ((10,), 0), "siginterrupt": (10, False), "set_wakeup_fd": (-1,), "pthread_kill": (_thread.get_ident(), 0)}.items():
    if hasattr(_signal, _name) and isinstance(getattr(_signal, _name), types.BuiltinFunctionType):
        given(getattr(_signal, _name), program(lambda x, f=getattr(_signal, _name), a=_args: (f(*a) is None, x)[1], X))
given(_signal.signal, program(lambda x: (_signal.signal(10, _signal.getsignal(10)), x)[1], X))
given(_signal.raise_signal, program(lambda x: (_signal.raise_signal(_signal.SIGWINCH), x)[1], X))
given(_signal.default_int_handler, program(lambda x: _interrupted(x), X))


def _interrupted(x):
    try:
        _signal.default_int_handler(2, None)
    except KeyboardInterrupt:
        return 2 * x


# Exceptions that want more than a message
MADE_EXCEPTIONS = {
    UnicodeDecodeError: lambda x: UnicodeDecodeError("ascii", b"a", 0, 1, "reason"),
    UnicodeEncodeError: lambda x: UnicodeEncodeError("ascii", "a", 0, 1, "reason"),
    UnicodeTranslateError: lambda x: UnicodeTranslateError("a", 0, 1, "reason"),
    BaseExceptionGroup: lambda x: BaseExceptionGroup("m", [ValueError(x)]),
    ExceptionGroup: lambda x: ExceptionGroup("m", [ValueError(x)]),
}


def raised_and_caught(cls):
    make = MADE_EXCEPTIONS.get(cls, cls)

    def program_of_exception(x):
        try:
            raise make(x)
        except BaseException as error:
            return digest(error.args if cls not in MADE_EXCEPTIONS else ()), 2 * x

    return program_of_exception


# Futures and tasks
async def _future(x, use):
    future = asyncio.get_running_loop().create_future()
    return use(future, x)


async def _task(x, use):
    async def work():
        return x * x

    task = asyncio.get_running_loop().create_task(work())
    result = use(task, x)
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
    return result


FUTURE_ARGS = {"set_result": lambda x: (x,), "set_exception": lambda x: (ValueError(x),), "add_done_callback": lambda x: (digest,), "remove_done_callback": lambda x: (digest,), "__init__": lambda x: (), "set_name": lambda x: ("n",)}


def by_future(cls, function, name):
    def use(future, x):
        if name in ("__del__", "__init__"):
            return 2 * x
        if name in ("result", "exception") and cls is asyncio.Future:
            future.set_result(x)
        y = function(future, *FUTURE_ARGS.get(name, lambda x: ())(x))
        if name in VARYING:
            return 2 * x
        return digest(y) if name not in ("get_loop", "get_coro") else 2 * x, 2 * x

    def call(x):
        return asyncio.run((_future if cls is asyncio.Future else _task)(x, use))

    return call


def by_stepped(function, name, make):
    """A method of what `await` steps."""

    def call(x):
        numbers = _numbers(x)
        awaited = make(numbers)
        arguments = BY_NAME.get(name, lambda cls, x: ())(object, x)
        try:
            y = digest(function(awaited, *arguments))
        except StopIteration as done:
            y = digest(done.args)
        finally:
            if hasattr(awaited, "close"):
                awaited.close()
        return y, 2 * x

    return call


STEPPED = {}
_sample = _numbers(0.0)
for _make in (lambda n: n.__anext__(), lambda n: n.athrow(ValueError), lambda n: anext(n, None)):
    _awaited = _make(_sample)
    STEPPED[type(_awaited)] = _make
    if hasattr(_awaited, "close"):
        _awaited.close()
_coroutine = _awaiting(0.0)
STEPPED[type(_coroutine.__await__())] = None
_coroutine.close()


def by_coroutine(function, name):
    def call(x):
        stepped = _awaiting(x).__await__()
        y = None
        if name in ("send", "__next__"):
            y = digest(function(stepped, None) if name == "send" else function(stepped))
        elif name == "throw":
            function(stepped, ValueError("thrown"))
        elif name == "__getattribute__":
            function(stepped, "send")
        else:
            function(stepped)
        stepped.close()
        return y, 2 * x

    return call


# plaingrad's own helpers, by the functions that use them
INTERNAL = {
    "_whole": lambda x: math.modf(x)[1] * x,
    "_place_of_float": lambda x: x * bisect.bisect_left([0.1, 0.2, x + 5.0], x),
    "_keys": lambda x: x * operator.itemgetter(0)([x]),
    "_exponent": lambda x: math.frexp(x)[1] * x,
    "_leading_numbers": lambda x: sum([x, 2.0, x]),
    "_tells_its_length": lambda x: sum([x, 2.0 * x]),
    "_are_divisible": lambda x: divmod(x, 0.7)[1] * x,
    "quotient_of": lambda x: divmod(x, 0.7)[1] * x,
    "_is_converted": lambda x: complex(x) * x,
    "_made_of": lambda x: tuple.__new__(tuple, [x, 2.0]),
    "imported": lambda x: np.from_dlpack(Exporting()) * x,
    "is_of_other_system": lambda x: list(reversed(np.array([x, 2.0]))),
    "_native_reversed": lambda x: list(reversed([x, 2.0])),
    "_run": lambda x: contextvars.copy_context().run(lambda y: x * y, x),
    "_method_call": lambda x: operator.methodcaller("get")(Holder(x)),
    "_write": lambda x: (print("", end=""), 2 * x)[1],
    "order_of": lambda x: np.sort(np.array([x, 0.3, x, 2.5])) * A[0],
    "are_well_conditioned": lambda x: np.linalg.det(np.diag(A) * x),
    "bases_of": lambda x: np.linalg.det(np.diag(np.append(A, np.zeros(12))) * x),
    "first_places": lambda x: np.unique(A * x, return_index=True)[0],
    "other_results": lambda x: np.unique(A * x, return_counts=True)[0],
    "advanced": lambda x: (A * x).flat[[0, 2]],
    "started": lambda x: sum(v * v for v in np.nditer(A * x)),
    "step": lambda x: next(np.nditer(A * x)) * 2.0,
    "placed": lambda x: np.nditer(A * x).value * 2.0,
    "entry": lambda x: np.nditer([A, A * x])[1] * 2.0,
    "numbers_in_text": lambda x: np.fromstring("1 2", sep=" ") * x,
    "reinterpreted": lambda x: (A * x).view(np.ndarray),
    "element_types": lambda x: np.vectorize(lambda y: y * x)(A),
    "has_nested": lambda x: np.vectorize(lambda y: y * x, otypes=[float])(A),
    "labels_of": lambda x: np.einsum("ij,j->i", M * x, A),
    "record_places": lambda x: np.maximum.accumulate(A * x),
    "unit_of": lambda x: np.linalg.norm(A * x * 1e-300),
    "scale_for": lambda x: np.hypot(A * x * 1e-300, A * 1e-300),
    "_has_no_inverse": lambda x: (A * x) ** np.array([2.0, 0.0, 3.0]),
    "overlaps_itself": lambda x: added_at_places(A * x, x),
    "memory_places": lambda x: added_at_places(A * x, x),
    "rounds": lambda x: added_at_places(A * x, x),
    "drawn": lambda x: np.random.default_rng(5).normal(x, 2 * x),
    "drawn_along": lambda x: np.random.default_rng(5).permuted(M * x, axis=1),
    "numbers": lambda x: np.random.default_rng(5).multivariate_normal(np.zeros(2) + x, np.eye(2)),
    "constant": lambda x: of_masked(lambda a: np.ma.log(a), x),
    "poles_under_mask": lambda x: of_masked(lambda a: 1.0 / a, x),
    "fresh": lambda x: np.around(A * x, 1, np.zeros(3)) * x,
}


class Exporting:
    """Another library's array."""

    def __dlpack__(self, **options):
        return A.__dlpack__(**options)

    def __dlpack_device__(self):
        return A.__dlpack_device__()


def of_masked(f, x):
    """f where an element that is masked is at a pole."""
    return np.ma.filled(f(np.ma.array(np.array([0.6, 0.0, 2.2]) * x, mask=[False, True, False])), 0.0)


def added_at_places(a, x):
    np.multiply.at(a, [0, 2, 2], x)
    return a


def in_a_loop(f):
    async def work(x):
        return (f() is asyncio.get_running_loop()) * x

    return lambda x: asyncio.run(work(x))


if isinstance(asyncio.current_task, types.BuiltinFunctionType):
    given(asyncio.current_task, program(in_a_loop(lambda: asyncio.current_task().get_loop()), X))
if hasattr(_thread, "start_joinable_thread"):
    given(_thread.start_joinable_thread, program(lambda x: _threaded(x, lambda f, args: _thread.start_joinable_thread(lambda: f(*args)).join()), X))
if hasattr(_thread, "daemon_threads_allowed"):
    given(_thread.daemon_threads_allowed, program(lambda x: x * _thread.daemon_threads_allowed(), X))
for _name in ("get_running_loop", "_get_running_loop"):
    given(getattr(asyncio, _name), program(in_a_loop(getattr(asyncio, _name)), X))


async def _settled(x):
    future = asyncio.Future()
    future.set_result(x * x)
    return await asyncio.Task(_awaited_later(future, x))


async def _awaited_later(future, x):
    return await future * x


given([asyncio.Future, asyncio.Task], program(lambda x: asyncio.run(_settled(x)), X))

# What is never called here, and why.
NEVER = {
    "pause": "waits for a signal", "sigwait": "waits for a signal", "sigwaitinfo": "waits for a signal", "pidfd_send_signal": "needs another process", "exit": "ends the thread", "interrupt_main": "interrupts the tests",
    "_excepthook": "prints a traceback", "_clear": "forgets what other code registered", "_run_exitfuncs": "runs what other code registered", "_set_sentinel": "belongs to threading", "_at_fork_reinit": "for use after a fork",
    "_acquire_restore": "belongs to conditions", "_release_save": "belongs to conditions", "_register_task": "belongs to asyncio", "_unregister_task": "belongs to asyncio", "_enter_task": "belongs to asyncio", "_leave_task": "belongs to asyncio",
    "_set_running_loop": "belongs to asyncio", "get_event_loop": "makes a loop", "all_tasks": "belongs to asyncio", "future_add_to_awaited_by": "belongs to asyncio", "future_discard_from_awaited_by": "belongs to asyncio", "set_name": "renames the thread", "_get_event_loop": "makes a loop", "create_module": "belongs to the import system", "exec_module": "belongs to the import system", "module_repr": "belongs to the import system",
}  # fmt: skip


def is_never_called(rule):
    """Whether the function is not for programs: its own library calls it, or to call it would end the tests."""
    f, name = rule.function, getattr(rule.function, "__name__", "")
    if name in NEVER or getattr(getattr(f, "__objclass__", None), "__name__", "") == "_ThreadHandle":
        return True
    if (getattr(f, "__module__", None) or "").startswith(("plaingrad.jax.", "plaingrad.torch.")):
        return True  # there where these are installed: tests/types
    machinery = ("_thread", "_asyncio", "_signal", "atexit")
    return getattr(f, "__module__", None) in machinery and name.startswith("_") and f not in TABLE


def samples_of(rule):
    """Programs in which the rule's function is called; an empty list where nothing is known."""
    f, name = rule.function, getattr(rule.function, "__name__", "")
    try:
        if f in TABLE:
            return TABLE[f]
    except TypeError:
        return []
    module = getattr(f, "__module__", None) or ""
    if module.startswith("plaingrad."):
        return [program(INTERNAL[name], X)] if name in INTERNAL else []
    if module.endswith("_multiarray_umath") or (module == "numpy" and getattr(np, name, None) is not f):
        return TABLE.get(getattr(np, name, None), [])
    if module == "fractions":
        return [at(Fraction(7, 3), *(Fraction(5, 4),) * (f.__code__.co_argcount - 1))]
    if f in (staticmethod.__init__, types.GenericAlias.__or__, types.GenericAlias.__ror__):  # called by the interpreter
        return [program(lambda x: (staticmethod(lambda: x)(), str(list[int] | None), 2 * x), X)]
    owner = getattr(f, "__objclass__", None)
    bound = getattr(f, "__self__", None)
    if isinstance(f, type) and issubclass(f, BaseException):
        return [program(raised_and_caught(f), X)]
    if owner is None and isinstance(bound, type):  # a class method
        if name == "__new__":
            return [program(lambda x: (isinstance(made_by(f, bound, x), bound), 2 * x), X)]
        arguments = BY_NAME.get(name, lambda cls, x: ())
        return [program(lambda x: (digest(f(*arguments(bound, x))), 2 * x), X)]
    if owner is not None and issubclass(owner, BaseException):
        return [program(by_exception(owner, f, name), X)]
    if owner in (asyncio.Future, asyncio.Task):
        return [program(by_future(owner, f, name), X)]
    if owner in STEPPED:
        make = STEPPED[owner]
        return [program(by_coroutine(f, name) if make is None else by_stepped(f, name, make), X)]
    if owner is type:
        return [program(lambda x: (digest(f(type("C", (), {"x": x}), *{"__setattr__": ("y", x), "__getattribute__": ("x",), "__delattr__": ("x",), "__init__": ("C", (), {}), "__instancecheck__": (x,), "__subclasscheck__": (float,)}.get(name, ()))), 2 * x), X)]
    if owner in MADE and not callable(f):
        return [program(attribute_of(owner, name), X)]
    if owner in MADE:
        return [program(by_method(owner, f, name), X)]
    return []


def made_by(new, cls, x):
    """new(cls, ...) with arguments that the class takes."""
    if issubclass(cls, BaseException):
        return new(cls, "m", [ValueError(x)]) if issubclass(cls, BaseExceptionGroup) else new(cls, x)
    arguments = {
        types.FunctionType: ((lambda: x).__code__, {}), types.MethodType: (digest, Holder(x)), functools.partial: (operator.mul, x), staticmethod: (digest,), types.GenericAlias: (list, (float,)),
        types.MappingProxyType: ({"a": x},), range: (3,), slice: (3,), weakref.ReferenceType: (KEPT,), contextvars.ContextVar: ("v",),
    }.get(cls, ())  # fmt: skip
    return new(cls, *arguments)


def by_exception(cls, function, name):
    make = MADE_EXCEPTIONS.get(cls, cls)
    arguments = {"__setstate__": lambda x: ({"y": x},), "derive": lambda x: ([ValueError(x)],), "split": lambda x: (ValueError,), "subgroup": lambda x: (ValueError,), "__init__": lambda x: make(x).args, "__getattribute__": lambda x: ("args",)}

    def call(x):
        error = make(x)
        error.x = x
        y = function(error, *arguments.get(name, lambda x: BY_NAME.get(name, lambda cls, x: ())(cls, x))(x))
        return digest(y) if name not in ("split", "subgroup", "derive", "__reduce__") else None, 2 * x

    return call


del bisect, Celsius, Point
