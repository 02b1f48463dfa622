"""Random programs over memory that no array owns, against the plain call and differences of it.

    python -m tests.hunts.buffers --count 2000 --seed 1

A program makes or gets buffers (bytearrays, memory maps, shared memory, ctypes blocks, other libraries' tensors), wraps
them in arrays in many ways, writes constants and numbers that depend on x into them, as arrays and past NumPy, reads
them, and gives them back. Value, state of the buffers that outlive the program, and exceptions must be those of the
plain call; the gradient, in both modes, that of differences; or the program is refused. Programs run in batches in
processes of their own, so that a crash is counted.
"""

from __future__ import annotations

import argparse
import array
import collections
import ctypes
import io
import mmap
import os
import pickle
import random
import struct
import subprocess
import sys
import tempfile
import traceback
import warnings
from multiprocessing import shared_memory
from typing import Any

import numpy as np

import plaingrad as pg

X = np.array([1.5, -0.5, 2.0, 0.25])
W = np.array([3.0, -2.0, 0.5, 7.0])
BATCH = 100
MODULES = {module.__name__: module for module in (array, ctypes, pickle, struct)}  # what programs use


# -- lenders -----------------------------------------------------------------------------------------------------------


class Tensor:
    """As another library's: it lends memory by `__array_interface__`, and works on it in place."""

    def __init__(self, values: Any) -> None:
        self.memory = (ctypes.c_double * 4)(*values)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        data = ctypes.addressof(self.memory), False
        return {"version": 3, "shape": (4,), "typestr": "<f8", "data": data}


class Exchanged:
    """As another library's: it lends memory by `__dlpack__`."""

    def __init__(self, values: Any) -> None:
        self.values = np.array(values)

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


def file_map() -> mmap.mmap:
    with tempfile.TemporaryFile() as file:
        file.write(W.tobytes())
        file.flush()
        return mmap.mmap(file.fileno(), 32)


def anonymous_map() -> mmap.mmap:
    m = mmap.mmap(-1, 32)
    m[:] = W.tobytes()
    return m


def shared() -> shared_memory.SharedMemory:
    shm = shared_memory.SharedMemory(create=True, size=32)
    shm.buf[:32] = W.tobytes()
    shm.unlink()
    return shm


def mapped_file() -> np.memmap:
    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(W.tobytes())
    m = np.memmap(file.name, float, "r+")
    os.unlink(file.name)
    return m


#: kind -> (how it is made, ways to wrap it, ways to read it past NumPy, ways to write it so, ways to give it back)
BUFFERED = ("np.frombuffer({o})", "np.ndarray(4, float, {o})", "np.asarray(memoryview({o}).cast('B').cast('d'))")
READ_BYTES = (
    "struct.unpack_from('d', {o}, 8)[0]",
    "np.frombuffer(bytes({o})).sum()",
    "np.frombuffer({o}[8:24]).sum()",
    "memoryview({o}).cast('B').cast('d')[1]",
)
KINDS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "bytearray": (
        "bytearray(W.tobytes())",
        (*BUFFERED, "np.ndarray((2, 2), float, {o})", "np.frombuffer({o}, np.uint8).view(float)"),
        (*READ_BYTES, "np.frombuffer({o}.copy()).sum()", "np.frombuffer(b''.join([{o}])).sum()"),
        ("{o}[8:16] = struct.pack('d', {c})", "struct.pack_into('d', {o}, 0, {c})"),
        ("{o}.clear()", "{o}.extend(bytes(8))"),
    ),
    "bytes": ("W.tobytes()", BUFFERED, READ_BYTES, (), ()),
    "anonymous_map": (
        "anonymous_map()",
        BUFFERED[:2],
        (*READ_BYTES[:2], "np.frombuffer({o}[:]).sum()"),
        ("{o}[8:16] = struct.pack('d', {c})",),
        ("{o}.close()",),
    ),
    "file_map": (
        "file_map()",
        BUFFERED[:2],
        (READ_BYTES[0], "np.frombuffer({o}.read(8) or W.tobytes())[0]"),
        ("{o}[0:8] = struct.pack('d', {c})",),
        ("{o}.close()",),
    ),
    "shared": (
        "shared()",
        ("np.frombuffer({o}.buf, count=4)", "np.ndarray(4, float, {o}.buf)", "np.ndarray(3, float, {o}.buf, 8)"),
        ("struct.unpack_from('d', {o}.buf, 8)[0]", "{o}.buf.cast('d')[2]", "np.frombuffer(bytes({o}.buf))[1]"),
        ("{o}.buf[8:16] = struct.pack('d', {c})",),
        ("{o}.close()",),
    ),
    "ctypes": (
        "(ctypes.c_double * 4)(*W)",
        (
            *BUFFERED,
            "np.ctypeslib.as_array({o})",
            "np.ctypeslib.as_array(ctypes.cast({o}, ctypes.POINTER(ctypes.c_double)), (4,))",
        ),
        ("{o}[1]", "sum({o})", "np.array({o}[:]).sum()", "ctypes.c_double.from_buffer({o}, 16).value"),
        ("{o}[1] = {c}", "ctypes.c_double.from_buffer({o}).value = {c}"),
        ("ctypes.memset({o}, 0, 32)",),
    ),
    "array": (
        "array.array('d', W)",
        BUFFERED,
        ("{o}[1]", "sum({o})", "np.array({o}.tolist()).sum()", "np.frombuffer({o}.tobytes())[2]"),
        ("{o}[1] = {c}",),
        ("{o}.extend([1.0] * 50)", "{o}.append(1.0)"),
    ),
    "BytesIO": (
        "io.BytesIO(W.tobytes())",
        ("np.frombuffer({o}.getbuffer())", "np.ndarray(4, float, {o}.getbuffer())"),
        ("np.frombuffer({o}.getvalue()).sum()", "np.frombuffer({o}.getbuffer())[1]"),
        ("{o}.getbuffer()[8:16] = struct.pack('d', {c})",),
        ("{o}.close()",),
    ),
    "Tensor": (
        "Tensor(W)",
        ("np.asarray({o})", "np.array({o}, copy=False)"),
        ("{o}.memory[1]", "sum({o}.memory)"),
        ("{o}.memory[2] = {c}",),
        ("ctypes.memset({o}.memory, 0, 32)",),
    ),
    "Exchanged": ("Exchanged(W)", ("np.from_dlpack({o})",), (), (), ("{o}.values.fill(0.0)",)),
    "mapped_file": (
        "mapped_file()",
        ("{o}[:]", "np.asarray({o})", "{o}.reshape(2, 2)", "np.frombuffer({o})", "np.ndarray(4, float, {o})"),
        ("np.frombuffer({o}.tobytes())[1]", "memoryview({o})[2]", "float({o}[3])"),
        ("{o}.base[8:16] = struct.pack('d', {c})",),
        ("{o}.flush()",),
    ),
    "own": (
        "W.copy()",
        ("{o}[:]", "np.asarray(memoryview({o}))", "np.frombuffer({o})", "np.ndarray(4, float, {o})", "{o}.T"),
        ("float({o}[1])", "memoryview({o})[2]"),
        ("memoryview({o})[1] = {c}",),
        ("del {o}",),
    ),
}
ALONE = (  # arrays that are all that refers to their memory
    "np.frombuffer(bytearray(W.tobytes()))",
    "np.ndarray(4, float, bytearray(W.tobytes()))",
    "np.asarray(array.array('d', W))",
    "pickle.loads(pickle.dumps(W, 5))",
    "pickle.loads(pickle.dumps(W.reshape(2, 2).T, 5)).ravel('K')",
    "np.frombuffer(anonymous_map())",
    "np.asarray(Tensor(W))",
    "np.ctypeslib.as_array((ctypes.c_double * 4)(*W))",
    "np.frombuffer(W.tobytes())",
    "mapped_file()",
)
CONSTANT_WRITES = (
    "{a}[...] = {c}",
    "{a}.flat[1] = {c}",
    "{a} *= {c}",
    "{a} += {a}",
    "{a}.ravel()[:2] = {c}",
    "np.copyto({a}, {c})",
    "np.add({a}, {c}, out={a})",
    "{a}.fill({c})",
    "{a} -= {c}",
)
ACTIVE_WRITES = (
    "{a}[...] = x.ravel()[:{a}.size].reshape({a}.shape) * {c}",
    "{a}.flat[1] = x[0] * x[1]",
    "{a} *= x[2]",
    "{a} += np.sin(x[1])",
    "np.multiply({a}, x[3], out={a})",
    "np.copyto({a}, x[0])",
    "{a}.ravel()[-1:] = x[1] * {a}.ravel()[0]",
)
READS = (
    "({a} * x[1]).sum()",
    "(x[:{a}.size].reshape({a}.shape) * {a}).sum()",
    "np.dot({a}.ravel(), x[:{a}.size])",
    "(np.exp(x[0] * 0.1) / (3.0 + {a} ** 2)).sum()",
    "({a} + x[2]).prod()",
    "np.where({a} > 0.6, x[0], {a} * x[1]).sum()",
    "np.concatenate([{a}.ravel(), x])[1] * x[3]",
    "float({a}.flat[1]) * x[2]",
    "(np.outer({a}, x) ** 2).mean()",
    "np.einsum('i,j->', {a}.ravel(), x * x)",
    "np.linalg.norm({a} * x[0] + 1.0)",
    "{a}.sum()",
    "{a}.flat[0]",
    "sum(v * x[1] for v in {a}.ravel())",
)
VIEWS = ("{a}[::-1]", "{a}[1:]", "{a}.ravel()", "{a}.T", "{a}.view()", "np.asarray({a})", "{a}[...]")


class Program:
    """A program, by its seed.

    Attributes:
        text: the source of `setup()`, which makes what outlives the program, and of `f(x)`.
    """

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.lines: list[str] = []
        self.outer: list[str] = []
        self.lenders: dict[str, str] = {}  # name -> kind
        self.arrays: dict[str, str] = {}  # name -> the lender's name
        self.count = 0
        for _ in range(self.r.choice((1, 1, 2))):
            self.new_lender()
        for _ in range(self.r.randint(3, 9)):
            self.step()
        self.lines.append("return s")
        names = ", ".join(name for name, _ in self.globals)
        made = "".join(f"    {name} = {how}\n" for name, how in self.globals)
        head = f"def setup():\n    global {names}\n{made}\n" if names else "def setup():\n    pass\n\n"
        self.text = f"{head}def f(x):\n    s = x[0] * x[3]\n" + "".join(f"    {line}\n" for line in self.lines)

    @property
    def globals(self) -> list[tuple[str, str]]:
        return [(name, KINDS[self.lenders_of_all[name]][0]) for name in self.outer]

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def constant(self) -> str:
        return repr(self.r.choice((0.5, 2.0, -1.5, 3.0)))

    def new_lender(self) -> None:
        o, kind = self.name("o"), self.r.choice(list(KINDS))
        self.lenders[o] = kind
        self.lenders_of_all = {**getattr(self, "lenders_of_all", {}), o: kind}
        if self.r.random() < 0.4:
            self.outer.append(o)
        else:
            self.lines.append(f"{o} = {KINDS[kind][0]}")
        self.wrap(o)

    def wrap(self, o: str) -> None:
        a = self.name("a")
        self.lines.append(f"{a} = {self.r.choice(KINDS[self.lenders[o]][1]).format(o=o)}")
        self.arrays[a] = o

    def step(self) -> None:
        r = self.r
        what = r.choices(
            ("wrap", "alone", "view", "constant", "active", "read", "raw read", "raw write", "close", "own", "raise"),
            (1, 1, 1, 2, 1.2, 5, 1, 1, 1.5, 2, 0.7),
        )[0]
        if what == "alone":
            a = self.name("a")
            self.lines.append(f"{a} = {r.choice(ALONE)}")
            self.arrays[a] = ""
            return
        if not self.lenders or not self.arrays:
            self.new_lender()
            return
        o, a, c = r.choice(list(self.lenders)), r.choice(list(self.arrays)), self.constant()
        _, _, reads, writes, closes = KINDS[self.lenders[o]]
        if what == "wrap":
            self.wrap(o)
        elif what == "view":
            b = self.name("a")
            self.lines.append(f"{b} = {r.choice(VIEWS).format(a=a)}")
            self.arrays[b] = self.arrays[a]
        elif what in ("constant", "active"):
            ways = CONSTANT_WRITES if what == "constant" else ACTIVE_WRITES
            self.lines += ["try:", f"    {r.choice(ways).format(a=a, c=c)}"]
            self.lines += ["except (ValueError, IndexError):", "    s = s + 10.0"]
        elif what == "read":
            self.lines += ["try:", f"    s = s + {r.choice(READS).format(a=a)}"]
            self.lines += ["except (ValueError, IndexError):", "    s = s * 2.0"]
        elif what == "own":
            b = self.name("b")
            self.lines.append(f"{b} = x[:2] * 1.0")
            self.lines.append(f"{b} {r.choice(('*=', '+=', '-='))} {a}.ravel()[:2]")
            self.lines.append(f"{b}[{r.choice(('0', '1:', ':'))}] = {a}.ravel()[0]" if r.random() < 0.4 else "pass")
            self.lines.append(f"s = s + ({b} * {b}).sum()")
        elif what == "raw read" and reads:
            self.lines.append(f"s = s + {r.choice(reads).format(o=o)} * x[2]")
        elif what == "raw write" and writes:
            self.lines.append(r.choice(writes).format(o=o, c=c))
        elif what == "raise":
            self.lines += ["try:", f"    s = s + ({a} * x[0]).sum()", "    raise KeyError"]
            self.lines += ["except KeyError:", "    s = s * 1.5"]
        elif what == "close" and closes and o not in self.outer:
            gone = [b for b, of in self.arrays.items() if of == o]
            drop = r.random() < 0.8  # else arrays are in the way, where they export the memory
            if drop and gone:
                self.lines.append(f"del {', '.join(gone)}")
            way = r.choice(closes).format(o=o)
            self.lines += ["try:", f"    {way}", "except BufferError:", "    s = s * 3.0"]
            for b in gone:
                del self.arrays[b]
            del self.lenders[o]


def close(a: Any, b: Any, tolerance: float) -> bool:
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True))


def state(names: dict[str, Any], program: Program) -> list[bytes]:
    """What is in the buffers that outlive the program."""
    found = []
    for name in program.outer:
        x = names[name]
        if isinstance(x, shared_memory.SharedMemory):
            found.append(bytes(x.buf))
        elif isinstance(x, io.BytesIO):
            found.append(x.getvalue())
        elif isinstance(x, Tensor):
            found.append(bytes(x.memory))
        elif isinstance(x, Exchanged):
            found.append(x.values.tobytes())
        else:
            found.append(bytes(x))
    return found


def one(seed: int) -> tuple[str, str]:
    """(outcome, what was found) of one program."""
    program = Program(seed)
    names = {**globals(), **MODULES}
    exec(compile(program.text, f"<program {seed}>", "exec"), names)
    setup, f = names["setup"], names["f"]

    def plain(x: np.ndarray) -> Any:
        setup()
        try:
            return f(x.copy()), state(names, program)
        except Exception as error:
            return error, None

    value, left = plain(X)
    if isinstance(value, Exception):
        try:
            setup()
            pg.grad(f)(X.copy())
        except pg.PlaingradError:
            return "refused", ""
        except Exception as error:
            same = type(error) is type(value)
            return ("raises", "") if same else ("WRONG", f"{error!r} for {value!r}")
        return "WRONG", f"no exception; the plain call raises {value!r}"
    slopes = []
    for k in range(4):
        up, down = X.copy(), X.copy()
        up[k] += 1e-6
        down[k] -= 1e-6
        slopes.append((plain(up)[0] - plain(down)[0]) / 2e-6)
    slopes = np.array(slopes)
    scale = 1.0 + np.abs(slopes).max()
    problems = []
    refused, why = 0, ""
    for mode in ("reverse", "forward", "later", "grad of grad"):
        setup()
        x = X.copy()
        try:
            if mode == "reverse":
                y, g = pg.value_and_grad(f)(x)
            elif mode == "forward":
                y, dot = pg.jvp(f, (x,), (slopes,))
                g = slopes * (dot / (slopes @ slopes)) if slopes.any() else slopes + dot
            elif mode == "later":
                y, pullback = pg.vjp(f, x)
                found = state(names, program)
                for name in program.outer:
                    names[name] = None
                (g,) = pullback(1.0)
            else:
                y, g = value, pg.grad(lambda t: t * pg.grad(f)(x) @ W)(1.0) / (slopes @ W) * slopes
                if abs(slopes @ W) < 1e-3 * scale:
                    continue
        except pg.PlaingradError as error:
            refused += 1
            why = f"{mode}: {str(error).splitlines()[0]}"
            continue
        except Exception as error:
            problems.append(f"{mode}: {error!r}\n{traceback.format_exc()}")
            continue
        if mode != "later":
            found = state(names, program)
        if not close(y, value, 1e-13):
            problems.append(f"{mode}: value {y!r} for {value!r}")
        if not close(np.asarray(g) / scale, slopes / scale, 1e-4):
            problems.append(f"{mode}: gradient {g} for {slopes}")
        if found != left and mode != "grad of grad":
            problems.append(f"{mode}: the buffers hold {found} for {left}")
    if problems:
        return "WRONG", "\n".join(problems)
    return ("refused" if refused else "right"), why


def child(first: int, count: int) -> None:
    """Run a batch, and print an outcome a line, each when it is known."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for seed in range(first, first + count):
        print(f"start {seed}", flush=True)
        try:
            outcome, text = one(seed)
        except Exception:
            outcome, text = "WRONG", f"the hunt itself: {traceback.format_exc()}"
        print(f"end {outcome} {text!r}", flush=True)


def batch(first: int, count: int, tally: collections.Counter[str], verbose: bool) -> None:
    """Run `count` programs in processes of their own."""
    at, end = first, first + count
    while at < end:
        command = [sys.executable, "-m", "tests.hunts.buffers", "--child", str(at), str(end - at)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
            lines, code = done.stdout.splitlines(), done.returncode
        except subprocess.TimeoutExpired as error:
            lines, code = (error.stdout or b"").decode().splitlines(), -999
        for line in lines:
            word, _, rest = line.partition(" ")
            if word == "start":
                at = int(rest)
            elif word == "end":
                outcome, _, text = rest.partition(" ")
                tally[outcome] += 1
                if outcome == "WRONG" or (verbose and outcome == "refused"):
                    print(f"{outcome} {at}\n{Program(at).text}\n{eval(text)}\n", flush=True)
                at += 1
        if code:
            tally["CRASHED"] += 1
            print(f"CRASHED {at} ({code})\n{Program(at).text}\n", flush=True)
            at += 1


def main() -> int:
    """Run, and say what came of it; 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=int, nargs=2, metavar=("FIRST", "COUNT"))
    parser.add_argument("--verbose", action="store_true", help="show the refused programs, too")
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return 0
    tally: collections.Counter[str] = collections.Counter()
    first = options.seed * 1_000_000
    for start in range(first, first + options.count, BATCH):
        batch(start, min(BATCH, first + options.count - start), tally, options.verbose)
    print(dict(tally))
    return 1 if tally["WRONG"] or tally["CRASHED"] else 0


if __name__ == "__main__":
    sys.exit(main())
