"""Where numbers become text or bytes, where text becomes numbers again, and where numbers are taken apart.

Text that holds digits of a differentiated value is legal: it is printed and logged. A number that is read back from
it has lost its derivative. The engine watches both ends; this is the list of the doors.
"""

from __future__ import annotations

import _json
import _pickle
import array
import ctypes
import marshal
import re
import struct
from decimal import Context, Decimal
from fractions import Fraction
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from plaingrad.define import composed, higher_order, inspector, mover

#: Builtins that make text of anything.
TEXT_OF_ANYTHING: tuple[Any, ...] = (str, repr, ascii, format)

#: Numbers in, text or bytes out.
FORMATTERS: tuple[Any, ...] = (
    *TEXT_OF_ANYTHING, bytes, bytearray,
    str.format, str.format_map, str.__mod__, bytes.__mod__, bytearray.__mod__,
    object.__repr__, object.__str__, object.__format__, float.__repr__, float.__format__, complex.__repr__, complex.__format__,
    list.__repr__, tuple.__repr__, dict.__repr__, set.__repr__,
    Decimal.__repr__, Decimal.__str__, Decimal.__format__, Decimal.to_eng_string, Context.to_sci_string, Context.to_eng_string,
    np.generic.__format__, np.generic.tobytes, np.generic.dumps, np.ndarray.tobytes, np.ndarray.dumps,
    _json.make_encoder, _json.make_encoder.__call__,
    struct.pack, struct.pack_into, struct.Struct.pack, struct.Struct.pack_into,
    _pickle.dumps, _pickle.dump, _pickle.Pickler, _pickle.Pickler.dump, marshal.dumps, marshal.dump,
    array.array, array.array.append, array.array.extend, array.array.fromlist, array.array.__setitem__,
    ctypes.c_double, ctypes.c_float, ctypes.c_longdouble,
)

#: Types whose call reads a number from text, or turns another number into one, which has a rule.
READ_OR_CONVERT: tuple[Any, ...] = (float, complex, np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128)

#: Text or bytes in, numbers out.
PARSERS: tuple[Any, ...] = (
    *dict.fromkeys(READ_OR_CONVERT), int, Decimal, Fraction, float.fromhex, eval,
    _json.make_scanner.__call__, _json.scanstring,
    struct.unpack, struct.unpack_from, struct.iter_unpack, struct.Struct.unpack, struct.Struct.unpack_from,
    _pickle.loads, _pickle.load, _pickle.Unpickler.load, marshal.loads, marshal.load,
    np.frombuffer, np.fromstring, np.fromfile, np.fromiter,
)

#: Numbers in, whole numbers or digits out: the value could be put together again from them. Refused when active.
DIGITS: tuple[Any, ...] = (
    float.as_integer_ratio, float.hex, float.__getnewargs__, complex.__getnewargs__,
    np.half.as_integer_ratio, np.single.as_integer_ratio, np.double.as_integer_ratio, np.longdouble.as_integer_ratio,
    Decimal.as_tuple, Decimal.as_integer_ratio, Decimal.__reduce__,
    Fraction.as_integer_ratio, Fraction.numerator, Fraction.denominator, Fraction.__reduce__,
)

#: Names of the methods of numbers that give digits away, and of all that make text or bytes of one.
DIGIT_METHODS = frozenset(("hex", "as_integer_ratio", "tobytes", "tostring", "dumps", "dump", "tofile"))
FORMATTING_METHODS = DIGIT_METHODS | {"__str__", "__repr__", "__format__"}

# Strings and patterns move text about, and call back.
inspector(*[_f for _name, _f in vars(str).items()
        if callable(_f) and _name not in ("format", "format_map", "__mod__", "__rmod__", "__repr__", "__str__", "__format__", "__new__")])
higher_order(*[_f for _f in vars(re.Pattern).values() if callable(_f) and not isinstance(_f, BuiltinFunctionType)])
inspector(*[_f for _name, _f in vars(re.Match).items() if callable(_f) and _name != "__repr__"])


def _write(*texts: str, **options: Any) -> None:
    print(*texts, **options)


mover(_write)


@composed(print)
def print_(*values: Any, **options: Any) -> None:
    """Printing is legal; what is printed is remembered as text is."""
    _write(*[str(x) for x in values], **options)
