"""The standard library, rewritten: its code objects keep their tables, its functions give the same results.

The tables of one module in five are looked at, other ones on each CPython; of all with PLAINGRAD_TEST_ALL=1.
"""

import contextlib
import importlib
import importlib.util
import io
import random
import sys
import warnings
from pathlib import Path
from types import CodeType

import pytest
from plaingrad.rewrite import rewrite_function, rewritten
from tests.rewrite.support import all_code, rewriting, using
from tests.sampling import is_in_sample

LIBRARY = Path(importlib.util.find_spec("textwrap").origin).parent
MODULES = """
abc aifc argparse ast asyncio/base_events asyncio/locks asyncio/queues asyncio/streams asyncio/taskgroups
asyncio/tasks asyncio/timeouts bdb bisect calendar cmd code codecs collections/__init__ colorsys concurrent/futures/_base
concurrent/futures/thread configparser contextlib copy csv ctypes/__init__ dataclasses datetime _pydatetime _pydecimal
difflib dis doctest email/message email/header enum fileinput fnmatch fractions functools gettext glob graphlib gzip
heapq hmac html/parser http/client http/server imaplib inspect ipaddress json/decoder json/encoder keyword logging/__init__
mailbox multiprocessing/pool numbers operator optparse os pathlib pathlib/__init__ pdb pickle pickletools platform plistlib
pprint profile pstats queue quopri random re/_compiler re/_parser reprlib sched selectors shlex shutil smtplib socketserver
statistics string subprocess symtable tarfile tempfile textwrap threading timeit tokenize trace traceback turtle types
typing unittest/case unittest/mock urllib/parse urllib/request uuid warnings weakref webbrowser wsgiref/handlers
xml/dom/minidom xml/etree/ElementTree zipfile zipfile/__init__ zoneinfo/_zoneinfo
""".split()
THERE = [name for name in MODULES if (LIBRARY / f"{name}.py").exists()]


@pytest.mark.parametrize("name", [name for name in THERE if is_in_sample(f"{name} {sys.version_info[:2]}", 5)])
def test_code_objects_keep_their_names_and_tables(name):
    path = LIBRARY / f"{name}.py"
    with warnings.catch_warnings(action="ignore"):
        module = compile(path.read_bytes(), str(path), "exec")
    for code in all_code(module):
        new = rewritten(code)
        assert new.co_flags == code.co_flags
        assert new.co_varnames[: len(code.co_varnames)] == code.co_varnames
        assert (new.co_cellvars, new.co_freevars) == (code.co_cellvars, code.co_freevars)
        assert len(new.co_names) >= len(code.co_names)
        assert new.co_names[: len(code.co_names)] == code.co_names
        pairs = zip(code.co_consts, new.co_consts)
        assert all(a is b or isinstance(a, CodeType) for a, b in pairs)
        assert {line for *_, line in new.co_lines()} - {None} == {line for *_, line in code.co_lines()} - {None}
        assert set(new.co_positions()) <= {*code.co_positions(), (None,) * 4}


def pure(name, accelerator=None):
    """A fresh copy of a module that does not find its C accelerator."""
    hidden = {accelerator: None} if accelerator else {}
    saved = {m: sys.modules.get(m) for m in hidden}
    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    try:
        sys.modules.update(hidden)
        spec.loader.exec_module(module)
    finally:
        for m, old in saved.items():
            if old is None:
                del sys.modules[m]
            else:
                sys.modules[m] = old
    return module


def json_round_trip():
    decoder, encoder = pure("json.decoder", "_json"), pure("json.encoder", "_json")
    from json.scanner import py_make_scanner

    d = decoder.JSONDecoder()
    d.parse_string = decoder.py_scanstring
    d.scan_once = py_make_scanner(d)
    text = encoder.JSONEncoder(indent=2, sort_keys=True).encode({"a": [1.5, None, True, {"b": "x\"\n\u1234"}], "c": {}, "d": -0.25})
    return text, d.decode(text), d.decode('[1e3, "\\u00e9\\n", {"k": [false]}]')


def texts():
    import textwrap

    text = "The quick brown fox, jumped over the lazy dog and then-some more words. " * 5
    wrapped = textwrap.wrap(text, 33, initial_indent="* ", subsequent_indent="  ")
    return wrapped, textwrap.dedent("   a\n     b\n   c"), textwrap.shorten(text, 40), textwrap.indent("a\n\nb", "> ")


def differences():
    import difflib

    a, b = "one\ntwo\nthree\nfour\n".splitlines(True), "ore\ntree\nthree\nfour!\n".splitlines(True)
    matcher = difflib.SequenceMatcher(None, "private Thread currentThread;", "private volatile Thread currentThread;")
    return list(difflib.ndiff(a, b)), list(difflib.unified_diff(a, b)), matcher.ratio(), matcher.get_opcodes()


def fractions():
    from fractions import Fraction as F

    x = F(3, 7)
    return [x + 1, x * F("2/5"), x**3, x / F(1, 9), -x, x < F(1, 2), float(x), F(0.125), divmod(x, F(1, 5)), round(x, 2)]


def decimals():
    import _pydecimal as D

    with D.localcontext() as c:
        c.prec = 40
        x = D.Decimal("2.5")
        return [str(v) for v in (x.sqrt(), x.ln(), x.exp(), x**7, x / 3, +x, x.quantize(D.Decimal("1")), x % 2, hash(x))]


def data_classes():
    from dataclasses import asdict, dataclass, field, replace

    @dataclass(order=True)
    class P:
        x: float
        y: float = 2.0
        tags: list = field(default_factory=list, compare=False)

        def norm(self):
            return (self.x**2 + self.y**2) ** 0.5

    @dataclass(frozen=True, slots=True)
    class Q:
        p: P
        n: int = 0

    p = P(3.0, 4.0)
    return p, p.norm(), asdict(Q(p, 2)), replace(p, x=1.0) < p, sorted([P(2), P(1)]), hash(Q(1, 2)) == hash(Q(1, 2))


def heaps():
    h = pure("heapq", "_heapq")
    rng = random.Random(1)
    xs = [rng.random() for _ in range(50)]
    heap = list(xs)
    h.heapify(heap)
    h.heappush(heap, 0.5)
    popped = [h.heappop(heap) for _ in range(20)]
    return popped, h.nsmallest(5, xs), h.nlargest(5, xs, key=lambda v: -v), list(h.merge(sorted(xs[:5]), sorted(xs[5:9])))


def unparsed():
    import ast

    tree = ast.parse((LIBRARY / "textwrap.py").read_text())
    return ast.unparse(tree), ast.dump(tree.body[5])


def statistics():
    import statistics as s

    xs = [1.0, 2.5, 4.25, 4.25, 9.0, 11.5]
    d = s.NormalDist.from_samples(xs)
    return (
        s.mean(xs), s.median(xs), s.mode(xs), s.stdev(xs), s.fmean(xs), s.quantiles(xs, n=4), s.linear_regression(xs, xs[::-1]),
        d.cdf(3.0), d.inv_cdf(0.3), s.harmonic_mean(xs), s.geometric_mean(xs),
    )  # fmt: skip


def randoms():
    r = random.Random(42)
    xs = list(range(20))
    r.shuffle(xs)
    return xs, r.sample(xs, 5), r.gauss(0, 1), r.betavariate(2, 3), r.choices("abc", [1, 2, 3], k=5), r.expovariate(2), r.triangular()


def parsers():
    import argparse
    import configparser
    import csv
    import shlex

    p = argparse.ArgumentParser(prog="p")
    p.add_argument("x", type=float, nargs="+")
    p.add_argument("--flag", action="store_true")
    sub = p.add_argument_group("g")
    sub.add_argument("-n", default=3, choices=[3, 4], type=int)
    c = configparser.ConfigParser()
    c.read_string("[a]\nx = 1\ny = %(x)s2\n[b]\nz: yes\n")
    out = io.StringIO()
    csv.DictWriter(out, ["a", "b"]).writerows([{"a": 1, "b": "x,y"}])
    return p.parse_args(["1", "2.5", "--flag", "-n", "4"]), c["a"]["y"], c.getboolean("b", "z"), shlex.split("a 'b c' d"), out.getvalue()


def dates():
    import calendar
    import datetime

    try:
        import _pydatetime as D
    except ImportError:  # until 3.11
        D = pure("datetime", "_datetime")
    d = D.date(2024, 2, 28) + D.timedelta(days=2)
    t = D.datetime(2020, 1, 1, 12, tzinfo=D.timezone(D.timedelta(hours=2)))
    return str(d), d.isocalendar()[:], t.isoformat(), str(t - D.timedelta(1.5)), calendar.month(2024, 2), datetime.MINYEAR


def counters():
    from collections import ChainMap, Counter, OrderedDict, UserList, namedtuple

    P = namedtuple("P", "x y", defaults=[2])
    c = Counter("mississippi")
    return c.most_common(2), c + Counter("miss"), dict(ChainMap({"a": 1}, {"b": 2})), P(1)._replace(y=3), UserList([1]) + [2], OrderedDict(a=1)


def contexts():
    log = []

    @contextlib.contextmanager
    def m(n):
        log.append(n)
        try:
            yield n
        finally:
            log.append(-n)

    with contextlib.ExitStack() as stack:
        for i in range(1, 4):
            stack.enter_context(m(i))
        stack.callback(log.append, "called")
        with contextlib.suppress(KeyError), m(9):
            raise KeyError
    return log


def event_loops():
    import asyncio

    async def producer(q):
        for i in range(4):
            await q.put(i * 0.5)
            await asyncio.sleep(0)
        await q.put(None)

    async def main():
        q = asyncio.Queue(2)
        got = []
        async with asyncio.TaskGroup() as group:
            group.create_task(producer(q))
            while (x := await q.get()) is not None:
                got.append(x)
        lock = asyncio.Lock()
        async with lock:
            got.append(await asyncio.wait_for(asyncio.sleep(0, 7), 1))
        return got, await asyncio.gather(*(asyncio.sleep(0, i) for i in range(3)))

    return asyncio.run(main())


def patterns():
    import re
    from re import _compiler, _parser

    tree = _parser.parse(r"(?P<a>\d+)(?:x|yz){2,3}?[^a-f]$")
    compiled = _compiler.compile(r"(a+)(b|c)*\1")
    return str(tree), compiled.match("aabcbaa").groups(), re.sub(r"(\w)(\w)", r"\2\1", "abcd")


def enumerations():
    import enum

    class Colour(enum.Enum):
        RED = 1
        GREEN = enum.auto()

        def describe(self):
            return self.name.lower()

    class Bits(enum.Flag):
        A = 1
        B = 2

    return list(Colour), Colour(2).describe(), Bits.A | Bits.B, Colour["RED"], Bits.A in Bits(3)


PROGRAMS = [json_round_trip, texts, differences, fractions, decimals, data_classes, heaps, unparsed, statistics, randoms]
PROGRAMS += [parsers, dates, counters, contexts, event_loops, patterns, enumerations]


@pytest.mark.parametrize("form", ["fused", "expressions"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_give_the_same_results_when_all_they_call_is_rewritten(program, form):
    expected = repr(program())
    with using(rewriting(form)):
        assert repr(rewrite_function(program, form)()) == expected
