"""Hazard 6: text that carries a differentiated number is edited and read again, or given to C code that may read it."""

import ast
import base64
import binascii
import codecs
import collections
import concurrent.futures
import csv
import ctypes
import datetime
import decimal
import fractions
import io
import itertools
import json
import logging
import multiprocessing
import os
import re
import socket
import sqlite3
import string
import subprocess
import sys
import tempfile
import textwrap
import threading
import warnings
import zlib

import numpy as np
import pytest

import plaingrad

X = 3.141592653589793
SHORT = 3.25

MODES = [plaingrad.grad, plaingrad.derivative]


@pytest.fixture(params=MODES, ids=["reverse", "forward"])
def slope(request):
    """The derivative of a function of one number, by either mode."""
    return request.param


# -- text that is edited, and read by Python ---------------------------------------------------------------------------

EDITED = {
    "a sign before": lambda x: float("-" + str(x)),
    "an exponent behind": lambda x: float(str(x) + "e2"),
    "another exponent": lambda x: float(f"{x:e}".split("e")[0] + "e-3"),
    "percent": lambda x: float(f"{x:%}".rstrip("%")) / 100.0,
    "more percent": lambda x: float(f"{x:.9%}"[:-1]),
    "printf": lambda x: float("%.9f" % x),
    "printf of several": lambda x: float(("%s|%r|%5.9f" % (x, x, x)).split("|")[2]),
    "formatted by name": lambda x: float("{v:.12f}".format(v=x)),
    "a sign by format": lambda x: float(f"{x:+.12e}"),
    "decimal": lambda x: float(decimal.Decimal("-" + str(x))),
    "digits of decimal": lambda x: float(decimal.Decimal((0, tuple(map(int, str(x).replace(".", ""))), -15))),
    "fraction": lambda x: float(fractions.Fraction("-" + str(x))),
    "complex": lambda x: complex(f"1-{x}j").imag,
    "json": lambda x: json.loads(f'{{"v": [-{x}, 1]}}')["v"][0],
    "json with an exponent": lambda x: json.loads(f"{x}e3"),
    "literal": lambda x: ast.literal_eval(f"(-{x}, 1)")[0],
    "eval": lambda x: eval(f"2.0 * {x}"),
    "eval with an exponent": lambda x: eval(f"{x}e2"),
    "exec": lambda x: exec(f"y = {x} * 1e1", space := {}) or space["y"],
    "split at the point": lambda x: float(int(str(x).split(".")[1])) * 1e-15 + 3.0,
    "only what is behind the point": lambda x: float("0." + str(x).partition(".")[2]),
    "the point left out": lambda x: int(str(x).replace(".", "")) * 1e-15,
    "split at the exponent": lambda x: float(f"{x * 1e-30!r}".split("e")[0]),
    "an exponent of its own": lambda x: float(f"{x * 1e-30!r}".split("e")[0]) * 10 ** int("-30"),
    "by a pattern": lambda x: float(re.match(r"(\d+)\.(\d{3})", f"{x:.12f}").group(0)[0]) + int(
        re.match(r"(\d+)\.(\d+)", f"{x:.12f}").group(2)
    ),
    "numpy text": lambda x: np.array(["-" + str(x)]).astype(float)[0],
    "numpy text with exponent": lambda x: np.array([str(x) + "e1", "2"], dtype=object).astype(float)[0],
    "numpy bytes": lambda x: np.array([str(x).encode() + b"e1"]).astype(np.float32)[0],
    "numpy from text": lambda x: np.fromstring(f"1 -{x} 2", sep=" ")[1],
    "numpy reading lines": lambda x: np.loadtxt([f"1 {x}e1"])[1],
    "numpy reading text": lambda x: np.genfromtxt(io.StringIO(f"1,-{x}"), delimiter=",")[1],
    "numpy numbers": lambda x: np.float64("-" + str(x)),
    "a date": lambda x: datetime.datetime.fromisoformat(f"2020-01-01T00:00:{x * 4:09.6f}").microsecond,
    "a date by format": lambda x: datetime.datetime.strptime(f"{x * 4:09.6f}", "%S.%f").microsecond,
    "a time": lambda x: datetime.time.fromisoformat(f"00:00:{x * 4:09.6f}").microsecond,
    "a whole number of an array": lambda x: np.array([str(x).split(".")[1]]).astype(int)[0],
    "a template": lambda x: float(string.Template("-${v}e1").substitute(v=x)),
    "wrapped": lambda x: float("".join(textwrap.wrap(f"-{x}", 40))),
    "translated": lambda x: float(f"{x}".replace(".", ",").translate({ord(","): "."})),
    "by columns": lambda x: -float(next(csv.reader([f"a,{x}e1"]))[1]),
    "a stream": lambda x: float("-" + io.StringIO(f"{x}\n").readline()),
    "bytes": lambda x: float(b"-" + str(x).encode()),
    "a byte string": lambda x: float(bytearray(b"-%r" % x)),
    "a buffer": lambda x: float(bytes(memoryview(str(x).encode()))),
    "encoded and back": lambda x: float(base64.b64decode(base64.b64encode(str(x).encode()))),
    "packed and back": lambda x: float(zlib.decompress(zlib.compress(str(x).encode()))),
    "written in hex and back": lambda x: float(bytes.fromhex(str(x).encode().hex())),
    "a character at a time": lambda x: float("".join(reversed("".join(reversed(str(x)))))),
    "joined": lambda x: float("-".join(["", str(x)])),
    "logged": lambda x: float(logged(x).split("=")[1] + "e1"),
    "a class's own text": lambda x: float("-" + str(collections.namedtuple("P", "v")(x))[4:-1]),
    "an array's text": lambda x: float("-" + np.array2string(np.array([x, 1.0]), precision=12)[1:10].strip()),
    "rows of dictionaries": lambda x: float(by_dictionaries(x)),
    "a class of numbers": lambda x: Real("-" + str(x)) + 0.0,
    "a context's decimal": lambda x: float(decimal.Context().create_decimal(f"-{x}")),
    "strings of numpy": lambda x: np.char.add("-", np.array([x]).astype(str)).astype(float)[0],
    "a regular expression of numpy": lambda x: np.fromregex(io.StringIO(f"a -{x}"), r"a (\S+)", [("v", "f8")])[0][0],
    "a record": lambda x: np.array([(1, f"-{x}")], dtype=[("k", "i4"), ("v", "f8")])["v"][0],
    "thousands": lambda x: float(f"{x * 1e6:,.3f}".replace(",", "")),
    "a large whole number": lambda x: float(f"{x * 1e200:.0f}"[:20]),
    "an array's text as text": lambda x: float("-" + np.array([x, 2.0]).astype(str)[0]),
}


class Real(float):
    pass


def by_dictionaries(x):
    page = io.StringIO()
    writer = csv.DictWriter(page, ["a", "b"])
    writer.writeheader()
    writer.writerows({"a": v, "b": 1} for v in (x, 2.0))
    page.seek(0)
    return "-" + next(csv.DictReader(page))["a"]


def logged(x):
    page = io.StringIO()
    logger = logging.Logger("plaingrad.tests.text")
    logger.addHandler(logging.StreamHandler(page))
    logger.warning("loss=%.12f", x)
    return page.getvalue().strip()


@pytest.mark.filterwarnings("ignore:string or file could not be read:DeprecationWarning")
@pytest.mark.parametrize("name", EDITED)
def test_edited_text_that_is_read_again_is_refused(name, slope):
    f = EDITED[name]
    with pytest.raises(plaingrad.RoundTripError) as refused:
        slope(lambda x: f(x) * x)(X)
    message = str(refused.value)
    assert ".py:" in message and "To go on:" in message


@pytest.mark.filterwarnings("ignore:string or file could not be read:DeprecationWarning")
@pytest.mark.parametrize("name", EDITED)
def test_the_same_of_a_constant_is_right(name, slope):
    f = EDITED[name]
    x = X + 1.0  # 4.14...: its digits are others than those of 3.14...
    constant = f(1.0 + 0.123456789)
    assert slope(lambda x: f(1.0 + 0.123456789) * x + 0.0 * len(str(x)))(x) == constant


@pytest.mark.parametrize(
    "edit",
    [
        lambda x: float("-" + str(x)),
        lambda x: float(str(x) + "e2"),
        lambda x: float(f"{x}E-1"),
        lambda x: int(str(x).replace(".", "")),
        lambda x: json.loads(f"-{x}"),
        lambda x: eval(f"-{x}"),
        lambda x: np.array([f"-{x}"], float)[0],
        lambda x: decimal.Decimal(f"-{x}e1"),
    ],
)
def test_edited_text_of_a_short_number(edit, slope):
    with pytest.raises(plaingrad.RoundTripError):
        slope(lambda x: float(edit(x)) * x)(SHORT)


@pytest.mark.parametrize("x", [2.0, 17.0, -40.0, 12345.0])
def test_whole_numbers_with_a_point(x, slope):
    with pytest.raises(plaingrad.RoundTripError):
        slope(lambda x: float(str(x)) * x)(x)
    with pytest.raises(plaingrad.RoundTripError):
        slope(lambda x: json.loads(json.dumps({"a": x}))["a"] * x)(x)


def test_text_crosses_the_levels():
    reads = [
        lambda x: plaingrad.grad(lambda y: float(str(x)) * y)(2.0),
        lambda x: (lambda text: plaingrad.grad(lambda y: float(text) * y)(2.0))(str(x)),
        lambda x: plaingrad.derivative(lambda y: float(f"-{x:.9f}") * y)(2.0),
        lambda x: plaingrad.grad(lambda y: y * float(f"{y * x!r}"))(2.0),
        lambda x: plaingrad.checkpoint(lambda y: float(str(y)) * y, x),
    ]
    for outer, f in itertools.product(MODES, reads):
        with pytest.raises(plaingrad.RoundTripError):
            outer(f)(X)


# -- text that is given to C code ----------------------------------------------------------------------------------------


connections = []


def connected():
    connections.append(sqlite3.connect(":memory:"))
    return connections[-1]


@pytest.fixture(autouse=True)
def closed_connections():
    yield
    while connections:
        connections.pop().close()


def by_sql(x):
    return connected().execute(f"SELECT 2.0 * {x}").fetchone()[0]


def by_sql_parameters(x):
    return float(connected().execute("SELECT CAST(? AS REAL)", (str(x),)).fetchone()[0])


def by_sql_script(x):
    database = connected()
    database.executescript(f"CREATE TABLE t (v REAL); INSERT INTO t VALUES (-{x});")
    return database.execute("SELECT v FROM t").fetchone()[0]


def by_sql_rows(x):
    database = connected()
    database.execute("CREATE TABLE t (v REAL)")
    database.executemany("INSERT INTO t VALUES (?)", [(str(x),), ("1",)])
    return database.execute("SELECT SUM(v) FROM t").fetchone()[0]


def by_sql_generated_rows(x):
    database = connected()
    database.execute("CREATE TABLE t (v REAL)")
    database.executemany("INSERT INTO t VALUES (?)", ((text,) for text in [str(x), "1"]))
    return database.execute("SELECT SUM(v) FROM t").fetchone()[0]


def by_sql_iterated_rows(x):
    database = connected()
    database.execute("CREATE TABLE t (v REAL)")
    database.executemany("INSERT INTO t VALUES (?)", iter([(str(x),), ("1",)]))
    return database.execute("SELECT SUM(v) FROM t").fetchone()[0]


def by_sql_callback(x):
    database = connected()
    database.create_function("written", 0, lambda: str(x))
    return float(database.execute("SELECT 2.0 * written()").fetchone()[0])


def by_process(x):
    return float(subprocess.run([sys.executable, "-c", f"print(2.0 * {x})"], capture_output=True).stdout)


def by_process_input(x):
    work = [sys.executable, "-c", "print(2.0 * float(input()))"]
    return float(subprocess.run(work, input=str(x).encode(), capture_output=True).stdout)


def by_process_text_input(x):
    work = [sys.executable, "-c", "print(2.0 * float(input()))"]
    return float(subprocess.run(work, input=str(x), capture_output=True, text=True).stdout)


def by_a_pool_of_processes(x):
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(float, f"-{x}").result()


def by_a_pipe_between_processes(x):
    out, into = multiprocessing.Pipe()
    with out, into:
        into.send(f"-{x}")
        return float(out.recv()[:3] + "5")


def by_shell(x):
    with os.popen(f"echo -{x}") as shell:
        return float(shell.read())


def by_pipe(x):
    out, into = os.pipe()
    try:
        os.write(into, str(x).encode())
        return float(os.read(out, 100).decode()[:2] + "5")
    finally:
        os.close(out)
        os.close(into)


def by_pipe_as_a_file(x):
    out, into = os.pipe()
    with os.fdopen(out) as source, os.fdopen(into, "w") as target:
        target.write(f"{x}\n")
        target.flush()
        return float(source.readline()[:2] + "5")


def by_socket(x):
    a, b = socket.socketpair()
    with a, b:
        a.sendall(f"{x}".encode())
        return float(b.recv(100)[:2] + b"5")


def by_base64(x):
    return len(base64.b64encode(str(x).encode()))


def by_hex(x):
    return len(binascii.hexlify(str(x).encode()))


def by_zlib(x):
    return len(zlib.compress(str(x).encode()))


def by_rot13(x):
    return len(codecs.encode(str(x), "unicode_escape") + codecs.encode(str(x).encode(), "base64"))


def by_a_file_that_c_code_reads(x):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table.sql")
        with open(path, "w") as page:
            page.write(f"SELECT {x}\n")
        return float(subprocess.run(["tail", "-c", "+8", path], capture_output=True).stdout[:2])


def by_a_printed_file_that_c_code_reads(x):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "number")
        with open(path, "w") as page:
            print(x, file=page)
        return float(subprocess.run(["cat", path], capture_output=True).stdout[:2] + b"5")


def by_a_function_of_c(x):
    read = ctypes.CDLL(None).atof
    read.restype = ctypes.c_double
    return read(f"-{x}".encode())


def by_a_pointer_of_c(x):
    read = ctypes.CDLL(None).atof
    read.restype = ctypes.c_double
    return read(ctypes.c_char_p(f"-{x}".encode()))


def by_a_buffer_of_c(x):
    read = ctypes.CDLL(None).atof
    read.restype = ctypes.c_double
    return read(ctypes.create_string_buffer(f"-{x}".encode()))


def by_strings_of_numpy(x):
    return np.array([str(x)], np.dtypes.StringDType()).astype(float)[0]


def by_strings_of_numpy_read_later(x):
    a = np.array(["1", "2"], np.dtypes.StringDType())
    a[0] = f"-{x}"
    return a.astype(np.float64)[0]


GIVEN = [v for k, v in list(globals().items()) if k.startswith("by_") and v is not by_dictionaries]
if not hasattr(np, "dtypes") or not hasattr(np.dtypes, "StringDType"):
    GIVEN = [f for f in GIVEN if "strings_of_numpy" not in f.__name__]
if sys.platform == "win32":
    GIVEN = [f for f in GIVEN if "_of_c" not in f.__name__]


@pytest.mark.parametrize("f", GIVEN, ids=lambda f: f.__name__)
def test_text_given_to_c_code_that_may_read_it_is_refused(f, slope):
    for x in (X, 0.1234567, SHORT):
        with pytest.raises(plaingrad.RoundTripError) as refused:
            slope(lambda x: f(x) * x)(x)
        message = str(refused.value)
        assert __file__ in message or "lib" in message
        assert "To go on:" in message


@pytest.mark.parametrize("f", GIVEN, ids=lambda f: f.__name__)
def test_text_of_constants_given_to_c_code_is_right(f, slope):
    constant = f(0.1234567)
    assert slope(lambda x: f(0.1234567) * x + 0.0 * len(f"{x:.12f}"))(X) == constant


# -- text that stays text is free ------------------------------------------------------------------------------------


def test_printing_logging_and_files_are_free(slope, tmp_path, capfd):
    def f(x):
        print("loss", x, f"{x:.9f}", file=sys.stderr)
        sys.stdout.write(f"{x}\n")
        sys.stdout.flush()
        os.write(1, f"{x}\n".encode())
        logged(x)
        warnings.warn(f"x is {x!r}", stacklevel=2)
        with open(tmp_path / f"run {x:.6f}.txt", "w") as page:
            page.write(f"{x:.12f} {x:e}\n")
            page.writelines([str(x), repr(x)])
        with open(tmp_path / "bytes", "wb") as page:
            page.write(str(x).encode())
        text = io.StringIO()
        csv.writer(text).writerow([x, f"{x}"])
        json.dump({"x": x, "text": f"{x}"}, text)
        assert os.path.exists(tmp_path / f"run {x:.6f}.txt") and text.getvalue().count(repr(x)) == 4
        return x * x

    with pytest.warns(UserWarning, match="x is 3.14"):
        assert slope(f)(X) == 2 * X
    assert capfd.readouterr().out.count(repr(X)) == 2


def test_moving_searching_and_comparing_text_is_free(slope):
    def f(x):
        text = f"value = {x:.12f}; {x!r}"
        assert len(text.encode()) == len(text) and text.encode("utf-8").decode("ascii") == text
        assert re.sub(r"\d", "9", text).count("9") == len(re.findall(r"\d", text))
        assert re.compile(r"= (\S+);").search(text).group(1).startswith("3.14159")
        assert sorted([text, "a"])[0] == "a" and {text: 1.0}[text] == 1.0 and text in {text}
        assert np.char.upper(np.array([text]))[0] == text.upper() and np.array([text]).tolist() == [text]
        assert np.char.str_len(np.array([text]))[0] == len(text)
        assert np.unique(np.array([text, "b", text])).size == 2
        assert hash(text) == hash(str(text)) and zlib.crc32(text.encode()) > 0
        assert codecs.encode(text, "utf-8") == text.encode() and io.BytesIO(text.encode()).read()
        assert json.loads(json.dumps([text, 7])) == [text, 7]
        assert int("42") == 42 and float("0.5") == 0.5 and json.loads("[1, 2.5]") == [1, 2.5]
        assert next(csv.reader(io.StringIO(f"{x},a")))[1] == "a"
        assert subprocess.run([sys.executable, "-c", "pass"], check=True).returncode == 0
        assert connected().execute("SELECT ?", ("0.75",)).fetchone() == ("0.75",)
        assert ("%s" % text).title() and text.center(99).strip() == text and textwrap.dedent(text) == text
        return x * float("2.5")

    assert slope(f)(X) == 2.5


def test_numbers_that_were_not_written_are_read_freely(slope):
    """Many numbers are logged, and others are read from text meanwhile."""

    def f(x):
        total = 0.0
        for k in range(200):
            x = x * 1.01
            logged(x)
            total = total + float(f"{k}.5") + int("100") + float("1e-3") + json.loads("0.25") + int("123456")
        return total * x

    total = sum(k + 0.5 + 100 + 1e-3 + 0.25 + 123456 for k in range(200))
    assert slope(f)(X) == pytest.approx(total * 1.01**200)


def test_files_written_and_read_back_are_refused(slope, tmp_path):
    path = tmp_path / "page"

    def written(x, text):
        path.write_text(text)
        return x

    def lines():
        with path.open() as page:
            return [float(line) for line in page]

    readers = [
        lambda: float(path.read_text()),
        lambda: float(np.loadtxt(path)),
        lambda: float(np.genfromtxt(path)),
        lambda: json.loads(path.read_text()),
        lambda: float(np.fromfile(path, sep=" ")[0]),
        lambda: lines()[0],
    ]
    for read in readers:
        with pytest.raises(plaingrad.RoundTripError):
            slope(lambda x, read=read: written(x, f"-{x!r}") * read())(X)
        assert slope(lambda x, read=read: written(x, "0.75") * read())(X) == 0.75


# -- refusals that somebody swallows ---------------------------------------------------------------------------------


def tolerant(read, text):
    """As many packages do: what cannot be read is nothing."""
    try:
        return read(text)
    except Exception:
        return 1.0


def test_a_refusal_that_a_package_swallows_is_raised_at_the_end(slope):
    reads = [
        float,
        json.loads,
        lambda text: eval(text),
        lambda text: connected().execute(f"SELECT {text}").fetchone()[0],
        lambda text: np.array([text]).astype(float)[0],
    ]
    for read in reads:
        with pytest.raises(plaingrad.RoundTripError) as refused:
            slope(lambda x, read=read: tolerant(read, str(x)) * x)(X)
        assert ".py:" in str(refused.value)


def test_a_refusal_that_becomes_another_exception_is_raised_at_the_end(slope):
    def f(x):
        try:
            return float(str(x)) * x
        except Exception as error:
            raise ValueError("not a number") from error

    with pytest.raises(plaingrad.RoundTripError):
        slope(f)(X)


def test_a_refusal_swallowed_in_a_thread_or_a_callback_is_raised_at_the_end(slope):
    def f(x):
        thread = threading.Thread(target=tolerant, args=(float, str(x)))
        thread.start()
        thread.join()
        return x * 2.0

    def g(x):
        return max([x, 2.0 * x], key=lambda v: tolerant(float, str(v)))

    for program in (f, g):
        with pytest.raises(plaingrad.RoundTripError):
            slope(program)(X)


def test_a_program_that_names_the_refusal_answers_it(slope):
    def f(x):
        try:
            return float(str(x)) * x
        except plaingrad.RoundTripError:
            return x * x

    def g(x):
        try:
            return float(str(x)) * x
        except Exception as error:
            if not isinstance(error, plaingrad.PlaingradError):
                raise
            return x * plaingrad.stop_gradient(x)

    assert slope(f)(X) == 2 * X
    assert slope(g)(X) == X
    for _ in range(2):  # nothing is left for the next one
        assert slope(lambda x: x * x)(X) == 2 * X


def test_an_inner_refusal_is_the_outer_programs_to_answer():
    def f(x):
        try:
            inner = plaingrad.grad(lambda y: float(str(y)) * y)(2.5)
        except Exception:
            inner = 3.0
        return x * inner

    assert plaingrad.grad(f)(X) == 3.0


# -- whole numbers that become times ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda x: datetime.timedelta(seconds=int(x * 1e3)).total_seconds(),
        lambda x: datetime.timedelta(0, round(x)).total_seconds(),
        lambda x: (datetime.datetime(2020, 1, 1) + datetime.timedelta(microseconds=int(x * 1e6))).timestamp(),
        lambda x: datetime.datetime(2020, 1, int(x)).day,
        lambda x: datetime.datetime.fromtimestamp(int(x * 1e6), datetime.timezone.utc).timestamp(),
        lambda x: datetime.date.fromordinal(int(x * 1e4)).toordinal(),
        lambda x: np.timedelta64(int(x * 1e9), "ns") / np.timedelta64(1, "s"),
        lambda x: np.datetime64(int(x * 1e3), "s").astype(int),
        lambda x: np.array([x, 2 * x]).astype(int).astype("timedelta64[s]").astype(float).sum(),
    ],
)
def test_times_made_of_truncated_numbers_are_warned_of(make, slope):
    with pytest.warns(plaingrad.errors.TruncationWarning, match=r"test_06_text_edited.*:\d+") as warned:
        y = slope(lambda x: make(x) * x)(X)
    assert y == make(X) and len(warned) == 1 and warned[0].filename == __file__


def with_its_warnings(f, x):
    """What `f` gives at `x`, and the warnings on the way: since 2.5, NumPy has one of whole numbers without a unit."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        return f(x), warned


def described(warned):
    """What can be compared of warnings."""
    return [(w.category, str(w.message)) for w in warned]


def assigned(x):
    times = np.zeros(3, "m8[s]")
    times[0] = int(x * 1e3)
    return times.astype(float).sum()


def assigned_from_a_list(x):
    times = np.zeros(3, "m8[s]")
    times[:2] = [int(x * 1e3), 5]
    return times.astype(float).sum()


def added_in_place(x):
    times = np.array([1, 2], "m8[s]")
    times += int(x * 1e3)
    return times.astype(float).sum()


def added_to_a_date(x):
    date = np.datetime64("2020-01-01")
    date += int(x * 1e3)
    return date.astype(float)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: np.array([int(x * 1e3)], "m8[s]").astype(float)[0],
        lambda x: np.array([int(x * 1e3)], dtype="M8[s]").astype(float)[0],
        lambda x: np.asarray([[round(x), 1], [2, 3]], "m8[s]").astype(float)[0, 0],
        lambda x: np.array(int(x * 1e3), "m8[s]").astype(float)[()],
        lambda x: np.array(np.array([int(x * 1e3)]), "m8[s]").astype(float)[0],
        lambda x: np.full(2, int(x * 1e3), "m8[s]").astype(float)[0],
        lambda x: np.arange(0, int(x * 1e1), dtype="m8[s]").astype(float).sum(),
        lambda x: np.fromiter((int(x * 1e3),), "m8[s]").astype(float)[0],
        lambda x: np.array([int(x * 1e3)]).astype("m8[s]").astype(float)[0],
        lambda x: np.array([int(x * 1e3)]).view("m8[s]").astype(float)[0],
        lambda x: np.array([x, 2 * x]).astype(int).astype("m8[s]").astype(float).sum(),
        lambda x: (np.datetime64("2020-01-01") + int(x * 1e3)).astype(float),
        lambda x: (np.array([1, 2], "m8[s]") + int(x * 1e3)).astype(float).sum(),
        lambda x: np.subtract(np.array([1, 2], "m8[s]"), int(x * 1e3)).astype(float).sum(),
        assigned,
        assigned_from_a_list,
        added_in_place,
        added_to_a_date,
    ],
)
def test_whole_numbers_that_numpy_makes_times_of_are_warned_of(make, slope):
    y, warned = with_its_warnings(slope(lambda x: make(x) * x), X)
    plain, of_numpy = with_its_warnings(make, X)
    (ours,) = (w for w in warned if w.category is plaingrad.errors.TruncationWarning)
    assert y == plain and ours.filename == __file__ and re.search(r"test_06_text_edited.*:\d+", str(ours.message))
    assert described(w for w in warned if w is not ours) == described(of_numpy)


def test_a_count_of_time_spans_and_other_integers_are_free(slope):
    day, times = np.timedelta64(1, "D"), np.array([1, 2], "m8[s]")

    def f(x):
        k = int(x * 1e3)
        spans = k * day / np.timedelta64(1, "h"), (times * k).astype(float).sum(), (day / k).astype(float)
        whole = np.array([k, 2]) + np.full(2, k) + np.array([k], np.int32).astype(float)
        fixed = np.array([90, 3600], "m8[s]").astype(float).sum() + (np.datetime64("2020-01-01") + 7).astype(float)
        return x * (sum(spans) + whole.sum() + fixed)

    y, warned = with_its_warnings(slope(f), X)
    plain, of_numpy = with_its_warnings(f, X)
    assert y == pytest.approx(plain / X, rel=1e-12) and described(warned) == described(of_numpy)


def test_times_made_of_other_whole_numbers_are_free(slope):
    def f(x):
        k = int(x * 10)
        span = datetime.timedelta(seconds=90) + datetime.timedelta(days=True) + k * datetime.timedelta(minutes=5)
        return x * span.total_seconds() * (np.timedelta64(7, "s") / np.timedelta64(1, "s"))

    assert slope(f)(X) == (90 + 86400 + 31 * 300) * 7
