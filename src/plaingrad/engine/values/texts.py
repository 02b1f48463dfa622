"""Text that carries differentiated numbers: what was written, and where it is read again.

Formatting, printing and logging are free. What is remembered of a formatted number is its value and its digits, so
that it is recognised in edited text too: with a sign or an exponent put before or behind it, with the point moved or
left out, split at the point. Functions that read numbers from text are asked to look first; C code without a rule may
read or run the text that it is given, and gets none in which such digits stand.
"""

from __future__ import annotations

import array
import ctypes
import io
import itertools
import math
import mmap
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from plaingrad import number_classes
from plaingrad.class_keys import is_among
from plaingrad.engine.memory.entries import items_of
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, SEQUENCE, kind_of
from plaingrad.engine.memory.tape import Tree
from plaingrad.engine.refusals.answered import is_expected
from plaingrad.engine.refusals.refuse import refuse
from plaingrad.engine.values import array_classes
from plaingrad.engine.values.nesting import outwards
from plaingrad.engine.values.raw_bytes import NOTE, RawBytes
from plaingrad.errors import RoundTripError
from plaingrad.rewrite import PLAIN
from plaingrad.tangents.fields import fields_of

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

LITERAL = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
POINT = "."
MOST = 100_000  # so many numbers are remembered; after that, every long number in text may be one of them
FEWEST_DIGITS = 6  # of a number that is recognised with its point moved or left out
LAST_SPLIT = 9  # behind so many digits text may be split
SHORT_DIGITS = 3  # of one that is recognised by all its digits, where a whole number is read
TEXT = (str, bytes, bytearray, memoryview)
TEXT_DTYPES = "SUT"
IN_BYTES = "whose bytes these are"


class Texts(dict[str, float]):
    """The numbers that left as text while they depended on the inputs of an open level, by what they round to.

    Attributes:
        digits: the same, and what is left of them where the text is split, with the point before the first digit.
        pending: those whose digits nobody has asked for yet.
        short: all digits of those that have few.
        files: paths of files that such text was written to.
        truncated: whole numbers that were made of such numbers.
        overflowed: not all are here.
        raw: numbers that left as bytes.
        marks: hashes and checksums of such numbers, and what makes them.
        kept: (table, key) of entries that have a mark as key -> the table.
    """

    __slots__ = ("digits", "files", "kept", "marks", "overflowed", "pending", "raw", "short", "truncated")

    def __init__(self) -> None:
        self.digits: dict[str, float] = {}
        self.short: set[str] = set()
        self.pending: list[float] = []
        self.files: set[str] = set()
        self.truncated: set[int] = set()
        self.overflowed = False
        self.raw = RawBytes()
        self.marks: set[Any] = set()
        self.kept: dict[tuple[int, Any], Any] = {}

    def clear(self) -> None:
        """Forget everything, when a level is used again."""
        if self:
            super().clear()
        for held in (
            self.digits,
            self.short,
            self.pending,
            self.files,
            self.truncated,
            self.raw,
            self.marks,
            self.kept,
        ):
            if held:
                held.clear()
        self.overflowed = False

    def remember(self, x: Any) -> None:
        """The number `x` is about to leave as text."""
        if number_classes.known and number_classes.system_of(x) is not None:
            for part in itertools.islice(numbers_in(x.tolist()), 1000):  # more are not printed
                self.remember(part)
            return
        for part in (x.real, x.imag) if isinstance(x, complex) else (x,):
            value = abs(float(part))
            if math.isfinite(value):
                self._remember(value)

    def remember_bytes(self, a: Any) -> None:
        """The numbers of an array are about to leave as bytes."""
        self.raw.remember(a)
        self[NOTE] = math.nan  # something is remembered

    def remember_mark(self, mark: Any) -> None:
        """A hash or checksum was made of a number."""
        self.marks.add(mark)
        self[NOTE] = math.nan  # something is remembered

    def _remember(self, value: float) -> None:
        if len(self) >= MOST:
            self.overflowed = True
        elif value.is_integer():
            if value > 1.0:  # 0.0 and 1.0 are written everywhere
                self[f"{value:.5e} whole"] = value
                if len(digits_of(value)) >= FEWEST_DIGITS:
                    self.pending.append(value)
        else:
            self[key_of(value)] = value
            written = digits_of(value)
            if len(written) <= FEWEST_DIGITS:
                self.short.add(written)
            self.pending.append(value)

    def find(self, text: str, fewest: int = FEWEST_DIGITS) -> str | None:
        """The first number in `text` that was written out; None if there is none.

        Args:
            text: what is about to be read.
            fewest: how many digits make a number known by all its digits, wherever its point is.
        """
        if self.raw and self.raw.find(text):
            return IN_BYTES
        for literal in LITERAL.findall(text):
            if len(literal) < SHORT_DIGITS and POINT not in literal:
                continue
            mantissa = literal.partition("e")[0].partition("E")[0]
            if mantissa == literal and len(literal) < FEWEST_DIGITS and POINT not in literal:
                if len(literal) >= fewest and literal.lstrip("0") in self.short:
                    return literal
                continue
            value = float(mantissa)
            if value and (self.holds(value, POINT in mantissa) or self._knows_digits(mantissa, fewest)):
                return literal
            if mantissa != literal and self.holds(float(literal), True):
                return literal
        return None

    def holds(self, value: float, pointed: bool = False) -> bool:
        """Whether a number that agrees with `value` to a millionth was written; a whole one only if `pointed`."""
        value = abs(value)
        if not 0.0 < value < math.inf:
            return False
        if pointed and value.is_integer():
            found = self.get(f"{value:.5e} whole")
            if found is not None and abs(value - found) <= value * 1e-6:
                return True
        return is_near(self, value, value * 1e-6)

    def _knows_digits(self, mantissa: str, fewest: int) -> bool:
        written = mantissa.replace(POINT, "").lstrip("0")
        digits = written.rstrip("0")
        n = len(digits)
        if n > FEWEST_DIGITS + 3 and self.overflowed:
            return True
        if n >= FEWEST_DIGITS + max(0, len(str(len(self))) - 2):  # among many numbers, more must agree
            self._look_at_pending()
            value = float("0." + digits)
            return is_near(self.digits, value, max(value * 1e-6, 10.0**-n))
        if len(written) > FEWEST_DIGITS and POINT in mantissa and self.holds(float(mantissa) / 100.0):
            return True  # percent
        return n >= fewest and (n == len(written) or len(written) >= FEWEST_DIGITS) and digits in self.short

    def _look_at_pending(self) -> None:
        """Enter the digits of numbers written since the last look, and what is left of them after each of the first."""
        while self.pending:
            written = digits_of(self.pending.pop())
            for k in range(LAST_SPLIT):
                rest = written[k:].lstrip("0")
                if len(rest) < FEWEST_DIGITS:
                    break
                digits = float("0." + rest)
                self.digits[key_of(digits)] = digits


def digits_of(value: float) -> str:
    """The digits of `value` that count, as `repr` writes them."""
    return repr(value).partition("e")[0].replace(POINT, "").strip("0")


def texts_for(parent: Any) -> Texts:
    """What a level inside `parent` remembers: the same, since what one wrote another may read."""
    return Texts() if parent is PLAIN else parent.texts


def key_of(value: float) -> str:
    """Numbers that agree to a millionth share this key, or that of a neighbour a millionth away."""
    return f"{value:.5e}"


def is_near(table: dict[str, float], value: float, step: float) -> bool:
    """Whether `table` has a number at most `step` from `value`."""
    for nearby in (value, value + step, value - step):
        found = table.get(key_of(nearby))
        if found is not None and abs(value - found) <= step * (1.0 + 1e-9):
            return True
    return False


# -- writing -----------------------------------------------------------------------------------------------------------


def numbers_in(x: Any) -> Iterator[Any]:
    """The numbers in nested lists."""
    if isinstance(x, list):
        for part in x:
            yield from numbers_in(part)
    else:
        yield x


def remember(level: Level, o: Any) -> None:
    """Remember the numbers in `o` that depend on the inputs of an open level: they are about to leave as text."""
    kind = kind_of(type(o))
    if kind == NOTHING:
        return
    if kind == SEQUENCE or kind == MAPPING:
        level.calls.meet_elements(o)
    elif kind != NUMBER and kind != ARRAY:
        level.meet_all(o)
    for outer in outwards(level):
        _remember(outer, o, kind)


def _remember(level: Level, o: Any, kind: int) -> None:
    if kind == NUMBER:
        if id(o) in level.index:
            level.texts.remember(o)
    elif kind == ARRAY and o.dtype.kind != "O":
        if level.region(o) is not None:
            for value in printed_part(array_classes.bare(o)).ravel().tolist():
                level.texts.remember(value)
    else:
        if isinstance(o, BaseException):
            _remember(level, o.args, SEQUENCE)
        _remember_slot(level, level.slot_of(o))


def _remember_slot(level: Level, slot: Any) -> None:
    if type(slot) is Tree:
        for inner in slot.slots.values():
            _remember_slot(level, inner)
    elif slot is not None:
        _remember(level, slot.x, kind_of(type(slot.x)))


def remember_text(level: Level, written: list[str]) -> None:
    """Texts arrive from where differentiated numbers went: each number in them may be one of these."""
    for text in written:
        for literal in LITERAL.findall(text):
            level.texts.remember(float(literal))


def remember_elements(level: Level, a: np.ndarray) -> None:
    """Remember all elements of an array that is converted to text."""
    for value in array_classes.bare(a).ravel()[:MOST].tolist():
        level.texts.remember(value)
    level.texts.overflowed |= a.size > MOST


def printed_part(a: np.ndarray) -> np.ndarray:
    """What the text of an array shows of it: the corners of a large one."""
    options = np.get_printoptions()
    if a.size <= max(options["threshold"], 1):
        return a
    edge = options["edgeitems"]
    for axis, n in enumerate(a.shape):
        if n > 2 * edge:
            a = np.take(a, [*range(edge), *range(n - edge, n)], axis)
    return a


def remembered_rows(level: Level, rows: Iterable[Any]) -> Iterator[Any]:
    """Rows on their way to a writer in C code, each with its numbers remembered."""
    for row in level.iterable(rows):
        yield remembered_row(level, row)


ROWS = frozenset((list, tuple, str))


def remembered_row(level: Level, row: Any) -> Any:
    """A row on its way to a writer in C code, as a list where it is an iterator; its numbers are remembered."""
    if not is_among(type(row), ROWS) and hasattr(type(row), "__iter__"):
        row = list(level.iterable(row))
    remember(level, row)
    return row


# -- reading -----------------------------------------------------------------------------------------------------------


def check(level: Level, text: Any, fewest: int = FEWEST_DIGITS) -> None:
    """Refuse text, about to be read, in which a number stands that was written out."""
    found = level.texts.find(decoded(text), fewest)
    if found is not None:
        refuse_number(level, found)


def check_number(level: Level, x: Any) -> None:
    """Refuse a number, or one in a container, that was read from text and is one that was written out."""
    texts = level.texts
    t = type(x)
    if t is float:
        if texts.holds(x, True) or texts.find(repr(x)):
            refuse_number(level, repr(x))
    elif t is int:
        if abs(x) >= 10**FEWEST_DIGITS and texts.find(str(x)):
            refuse_number(level, str(x))
    elif t is complex:
        check_number(level, x.real)
        check_number(level, x.imag)
    elif t is list or t is tuple:
        for part in x:
            check_number(level, part)
    elif t is dict:
        for part in list(x.values()):
            check_number(level, part)
    elif isinstance(x, np.generic) and x.dtype.kind in "fc":
        check_number(level, x.item())
    elif isinstance(x, np.ndarray) and x.dtype.kind in "fc":
        for part in array_classes.bare(x).ravel()[:MOST].tolist():
            check_number(level, part)


def check_conversion(level: Level, x: Any, y: Any) -> None:
    """Refuse numbers `y` that C code has read from the text in `x`."""
    if type(y) is tuple:
        for part in y:
            check_conversion(level, x, part)
        return
    if isinstance(y, (np.ndarray, np.generic)):
        kind = y.dtype.kind
    else:
        kind = "f" if kind_of(type(y)) == NUMBER else "O"
    if kind in "fcmM":
        found = first_number(level, x)
        if found is not None:
            refuse_number(level, found)
    elif kind in "iu":
        check_number(level, np.ravel(y)[:MOST].tolist())
        check_bytes(level, x)
    elif kind in "SUV" and not (kind == "V" and y.dtype.names):
        check_bytes(level, x)
    elif kind == "V" and y.dtype.names:
        for name in y.dtype.names:
            check_conversion(level, x, y[name])


def check_bytes(level: Level, *values: Any) -> None:
    """Refuse bytes of a differentiated array on their way to code that makes numbers of them."""
    raw = level.texts.raw
    if raw and any(map(raw.find, values)):
        refuse_number(level, IN_BYTES)


def refuse_number(level: Level, number: str) -> NoReturn:
    """Refuse `number`, which was read from text or bytes."""
    refuse_round_trip(
        level,
        f"the number {number} came back from text or bytes",
        "It depended on the inputs when it was written out, so its derivative is lost.",
        "pass the number itself, or plaingrad.stop_gradient(x) before it is written out",
    )


def refuse_round_trip(level: Level, what: str, why: str, fix: str) -> NoReturn:
    """Refuse, and remember that: whoever swallows it would go on with a constant (an `except Exception`, say)."""
    try:
        refuse(RoundTripError, what, why=why, fix=fix, anchor="round-trip")
    except RoundTripError as refusal:
        if level.refusal is None and not is_expected():
            level.refusal = refusal
        raise


def decoded(x: Any) -> str:
    """Text or bytes as text."""
    if type(x) is str:
        return x
    if isinstance(x, str):
        return str.__str__(x)
    return bytes(x).decode("latin-1") if not (isinstance(x, memoryview) and x.format not in "Bbc") else ""


def holds_text(x: Any) -> bool:
    """Whether NumPy would read numbers from text in `x`."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind in TEXT_DTYPES or (x.dtype.kind == "O" and any(map(holds_text, x.flat[:1000])))
    if isinstance(x, (list, tuple)):
        return any(map(holds_text, x[:1000]))
    return isinstance(x, TEXT)


def first_number(level: Level, x: Any, fewest: int = FEWEST_DIGITS) -> str | None:
    """The first number that was written out in the text that `x` is or holds."""
    find = level.texts.find
    for text in itertools.islice(texts_in(x), MOST):
        found = find(text, fewest)
        if found is not None:
            return found
    return None


def texts_in(x: Any) -> Iterator[str]:
    """The strings and bytes in containers, arrays, streams and objects."""
    todo: deque[Any] = deque((x,))
    seen: set[int] = set()
    while todo and len(seen) < MOST:
        x = todo.popleft()
        t = type(x)
        if isinstance(x, TEXT):
            yield decoded(x)
            continue
        kind = kind_of(t)
        if kind in (NOTHING, NUMBER) or id(x) in seen or isinstance(x, type):
            continue
        seen.add(id(x))
        if kind == ARRAY:
            if x.dtype.kind == "O" or x.dtype.kind in TEXT_DTYPES:
                todo.extend(np.ravel(x).tolist())
        elif kind == MAPPING:
            todo.extend(itertools.chain.from_iterable(items_of(x)))
        elif kind == SEQUENCE or t is set or t is frozenset:
            todo.extend(x)
        elif t is io.StringIO or t is io.BytesIO:
            if not x.closed:
                yield decoded(x.getvalue())
        elif isinstance(x, (ctypes.Array, array.array, mmap.mmap)):
            yield in_memory(x)
        elif isinstance(x, ctypes.c_char_p | ctypes.c_wchar_p):
            todo.append(x.value)
        elif not callable(x) and type(getattr(x, "__dict__", None)) is dict:
            todo.extend(fields_of(x).values())


def in_memory(x: Any) -> str:
    """The beginning of a block of memory, as text."""
    try:
        with memoryview(x) as view:
            return bytes(view.cast("B")[:MOST]).decode("latin-1") if view.nbytes else ""
    except (TypeError, ValueError, BufferError):
        return ""
