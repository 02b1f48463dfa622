"""Many random programs: the native gradient and tangent against the plain tier, the program itself and differences.

    python -m tests.native.campaign --count 2000 --seed 100000             # run by CPython
    python -m tests.native.campaign --count 300 --seed 200000 --compiled   # compiled, the pullback, smaller programs
    python -m tests.native.campaign --count 1000 --seed 300000 --rich      # more of the language: see rich_programs
    python -m tests.native.campaign --show 100123                          # one program, minimised if it fails

Needs PYTHONPATH=src. Prints every failure with its seed and a summary, with the number of programs that were compared; ends with status 1 if anything failed.
Interrupted, it prints the summary of what it has done.
"""

import argparse
import collections
import os
import re
import resource
import signal
import sys
import time
import warnings

import numba
import numpy as np
from numba.core.errors import NumbaError

import plaingrad
from plaingrad.native.frontend.current import with_compiled_callees
from tests.native import comparison, random_programs, rich_programs
from tests.native.comparison import bits, copied

REFUSED = "refused"
COMPARED = ("right", "FAILS", "wild")


class TooLong(Exception):
    """A program ran for too long: it is left out."""


class Different(AssertionError):
    """A native result is not what it should be."""


def outcome(f, args):
    """(the value of a call, the arguments as it leaves them), or (the type of its exception, None)."""
    args = copied(args)
    try:
        return f(*args), args
    except TooLong:
        raise
    except Exception as error:
        return type(error), None


def check(f, args, at, compiled=False):
    """Compare; what came of it in a word: "right", "refused: ...", "raises", "wild", "not compiled" by Numba itself.

    Compiled, the value is that of the program as Numba compiles it, to the last bit; run by CPython, NumPy may add up in
    another order than the derived program.

    Raises:
        Different: value, effects, exception, gradient or tangent are not those of the program and the plain tier.
    """
    value, left = outcome(f, args)
    if compiled and left is None:
        return "raises"  # compiled it may write out of bounds instead
    tolerance = 1e-4 if "float32" in f.__code__.co_names else 1e-9
    if compiled:
        left = copied(args)
        try:
            value = numba.njit(with_compiled_callees(f))(*left)
        except (NumbaError, NotImplementedError):  # the latter for arrays of two layouts in one variable
            return "not compiled"
    try:
        native, native_left, found = gradient(f, args, at, compiled)
    except plaingrad.NativeError as error:
        return f"{REFUSED}: {reason(error)}"
    except TooLong:
        raise
    except Exception as error:
        if left is None and type(error) is value:
            return "raises"
        raise Different(f"raises {type(error).__name__}: {error}") from error
    if left is None:
        raise Different(f"returns {native}, where the program raises {value.__name__}")
    if compiled and bits((native, native_left)) != bits((value, left)):
        raise Different(f"the value is {native!r}, that of the compiled program {value!r}")
    same((native, native_left), (value, left), 1e-3 * tolerance, "value and arguments left")
    plain_value, expected = plaingrad.value_and_grad(f, at, tier="plain")(*copied(args))
    if not np.isclose(plain_value, value, rtol=tolerance, equal_nan=True):
        return "wild"  # a[i] = a[:, j]: which of the elements that overlap are read before they are written is left open
    sizes = [np.abs(leaf).max(initial=0.0) for leaf in comparison.leaves(expected)]
    if not np.isfinite(sizes).all() or max(sizes) > 1e9 or not abs(value) < 1e9:
        return "wild"
    if not all(np.isfinite(leaf).all() for leaf in comparison.leaves(left)):
        return "wild"  # what an argument is left with has a cotangent of 0 that comes in: 0 * inf
    same(found, expected, 10 * tolerance if compiled else tolerance, "gradient")
    if compiled:
        return "right"
    random = np.random.default_rng(1)
    dots = [comparison.random_like(x, random) for x in args]
    along = sum(comparison.inner(g, dots[k]) for g, k in zip(expected, at, strict=True))
    scale = sum(float(np.sum(np.abs(np.asarray(g) * dots[k]))) for g, k in zip(expected, at, strict=True))
    moved_args = copied(args)
    value_again, y_dot = comparison.pushed_forward(f, moved_args, at, [copied(dot) for dot in dots])
    same(
        (value_again, moved_args),
        (value, left),
        1e-3 * tolerance,
        "value and arguments left by the pushforward",
    )
    if abs(y_dot - along) > tolerance * scale + 1e-11:
        raise Different(f"the tangent is {y_dot}, by the plain tier {along}")
    if tolerance > 1e-9:
        return "right"  # differences of float32 say nothing
    try:
        with np.errstate(all="ignore"):
            slope, error = comparison.slope_by_differences(f, args, dots, at, float)
    except (ArithmeticError, AssertionError, LookupError, ValueError):
        return "right"  # a point beside this one raises: differences say nothing
    if error < 1e-7 * max(1.0, scale) and abs(slope - along) > 1e-4 * max(1.0, scale):
        raise Different(f"differences give {slope} +- {error:.1g}, both tiers {along}")
    return "right"


def gradient(f, args, at, compiled):
    """(value, arguments as left, gradient), natively."""
    args = copied(args)
    (value,), found = comparison.pulled_back(f, args, at, [1.0], compiled)
    return value, args, found


def same(found, expected, rtol, what):
    try:
        comparison.assert_close(found, expected, rtol, what)
    except AssertionError as error:
        raise Different(str(error)) from error


def reason(error):
    """A refusal without its place."""
    text = re.sub(r" at <random.*", "", str(error).split("\n")[0])
    return re.sub(r"`[^`]*`", "`...`", text)[:80] + (
        " " + str(error).split("\n")[1].strip()[:70] if "compile" in text else ""
    )


def alarmed(*_):
    raise TooLong


def run(language, text, seed, compiled, seconds=20):
    """What came of the program `text` with the arguments of `seed`; "FAILS: ..." if it differs."""
    signal.signal(signal.SIGPROF, alarmed)
    args, at = random_programs.arguments(seed)
    try:
        f = language.compiled_text(text, f"<random program {seed}>")
        signal.setitimer(
            signal.ITIMER_PROF, 10 * seconds if compiled else seconds
        )  # stopped, Numba is left broken
        return check(f, args, at, compiled)
    except TooLong:
        return "too long"
    except (MemoryError, RecursionError) as error:
        return f"too large: {type(error).__name__}"
    except Different as error:
        return "FAILS: " + " ".join(str(error).split())[:300]
    except Exception as error:
        return f"FAILS: {type(error).__name__}: " + " ".join(str(error).split())[:300]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def run_apart(*given):
    """`run` in a process of its own, which compiled code may crash: "FAILS: killed by signal ..." then."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.write(writer, run(*given).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        result = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return result if result else f"FAILS: killed by signal {os.waitstatus_to_exitcode(status)}"


def kind(result):
    """The kind of a failure, by which a smaller program is known to be the same one."""
    return re.sub(r"[^a-zA-Z ]+", "", result)[:24]


def minimised(language, text, seed, compiled, result):
    """A program with fewer statements that fails likewise."""
    lines = text.splitlines()
    runs = run_apart if compiled else run

    def depth(line):
        return len(line) - len(line.lstrip())

    def smaller():
        for k in range(len(lines) - 1, 0, -1):
            end = k + 1
            while end < len(lines) and depth(lines[end]) > depth(lines[k]):
                end += 1
            yield [*lines[:k], *lines[end:]]
            if end > k + 1:
                yield [*lines[:k], *[line[4:] for line in lines[k + 1 : end]], *lines[end:]]
            for old, new in ((r"\(.*\)", "x"), (r"= .*", "= x"), (r" [-+*/] .*", "")):
                changed = re.sub(old, new, lines[k], count=1)
                if changed != lines[k]:
                    yield [*lines[:k], changed, *lines[k + 1 :]]

    progress = True
    while progress:
        progress = False
        for candidate in smaller():
            if len("".join(candidate)) < len("".join(lines)) and kind(
                runs(language, "\n".join(candidate) + "\n", seed, compiled, 10)
            ) == kind(result):
                lines, progress = candidate, True
                break
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=100_000)
    parser.add_argument("--size", type=int)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--rich", action="store_true", help="programs of rich_programs")
    parser.add_argument("--show", type=int)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    options = parser.parse_args()
    size = options.size or (3 if options.compiled else 6)
    language = rich_programs if options.rich else random_programs
    runs = run_apart if options.compiled else run
    if options.compiled:  # what Numba does once, all processes have
        run(random_programs, random_programs.program(0, 2), 0, True)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    if options.show is not None:
        text = language.program(options.show, size)
        print(text)
        result = runs(language, text, options.show, options.compiled)
        print(result)
        if result.startswith("FAILS"):
            text = minimised(language, text, options.show, options.compiled, result)
            print(text, runs(language, text, options.show, options.compiled), sep="\n")
        return
    found, start, failures = collections.Counter(), time.time(), []
    try:
        for seed in range(options.seed, options.seed + options.count):
            if time.time() - start > options.seconds:
                break
            result = runs(language, language.program(seed, size), seed, options.compiled)
            found[result if result.startswith(REFUSED) else result.split(":")[0]] += 1
            if result.startswith("FAILS"):
                failures.append(seed)
                print(seed, result, flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    compared = sum(found[what] for what in COMPARED)
    print(f"{sum(found.values())} programs in {time.time() - start:.0f} s, {compared} compared")
    for what, times in found.most_common():
        print(f"{times:6d}  {what}")
    print("failures:", *failures)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
