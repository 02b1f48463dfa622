"""What may run once for a whole batch: code and classes that leave nothing behind, and functions that compute only."""

from __future__ import annotations

import builtins
import inspect
import math
import weakref
from functools import partial
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from plaingrad.critical import imported
from plaingrad.engine.batches.mapped import Mapped
from plaingrad.engine.memory.kinds import is_heap
from plaingrad.engine.users_code.class_attributes import lookup
from plaingrad.rewrite import original

#: Instructions that store where it lasts, run code that no hook sees, or look at classes without a hook.
REFUSED = frozenset(
    "STORE_GLOBAL STORE_NAME DELETE_GLOBAL DELETE_NAME DELETE_ATTR DELETE_SUBSCR STORE_SUBSCR STORE_SLICE STORE_ATTR "
    "BEFORE_WITH BEFORE_ASYNC_WITH LOAD_SPECIAL WITH_EXCEPT_START IMPORT_NAME IMPORT_FROM LOAD_BUILD_CLASS MATCH_CLASS "
    "MATCH_MAPPING MATCH_KEYS MATCH_SEQUENCE GET_AWAITABLE GET_AITER GET_YIELD_FROM_ITER SEND BUILD_TEMPLATE".split()
)
SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
SPECIAL = tuple(
    f"__{name}__"
    for name in (
        "bool len iter hash eq ne lt le gt ge contains getitem enter exit index int float complex call array "
        "array_ufunc array_function str repr format getattr getattribute"
    ).split()
)
OF_BUILTINS = """
abs all any callable divmod isinstance issubclass len max min round sorted sum hasattr bool complex float int list tuple
dict set frozenset range slice str type
""".split()
OF_NUMPY = """
abs all allclose amax amin any append arange argmax argmin argsort argwhere array array_equal around asarray
ascontiguousarray asfarray atleast_1d atleast_2d atleast_3d average bincount block broadcast_arrays broadcast_shapes
broadcast_to ceil clip column_stack concatenate convolve corrcoef cov cross cumprod cumsum diag diagonal diff digitize
dot einsum empty_like expand_dims eye flip fliplr flipud full full_like histogram hstack identity imag inner interp
isclose isscalar kron linspace logspace matmul max mean median meshgrid min moveaxis ndim nonzero ones ones_like outer
percentile prod ptp quantile ravel real repeat reshape result_type roll rollaxis rot90 round searchsorted shape size
sort split squeeze stack std sum swapaxes take tensordot tile trace transpose trapezoid tri tril triu unique vander
var vdot vstack where zeros zeros_like
""".split()
OF_LINALG = "cholesky det eigh eigvalsh inv norm pinv qr slogdet solve svd".split()
TYPES = "float64 float32 int64 int32 bool_ complex128 dtype".split()


def _of(module: Any, names: list[str]) -> set[Any]:
    return {getattr(module, name) for name in names if hasattr(module, name)}


#: Functions that compute, and nothing else, of numbers, arrays and containers of them.
PURE = _of(builtins, OF_BUILTINS) | _of(np, OF_NUMPY) | _of(np.linalg, OF_LINALG) | _of(np, TYPES)
PURE |= _of(math, [name for name in dir(math) if name[0] != "_"])
#: Functions that warn, by Python, of what is empty.
MEANS = _of(np, "mean std var median average cov corrcoef percentile quantile".split())

#: Methods of builtin classes that change nothing.
METHODS = {
    dict: frozenset("get items keys values copy".split()),
    list: frozenset("count index copy".split()),
    tuple: frozenset("count index".split()),
    str: frozenset("startswith endswith lower upper strip split join replace format".split()),
    range: frozenset("count index".split()),
    float: frozenset("is_integer conjugate hex".split()),
    int: frozenset("bit_length conjugate".split()),
}

_known: dict[int, tuple[Any, str | None]] = {}  # id of a code object -> (weak reference, why it is refused)
_CLASS_NAMES = frozenset(name for name, x in vars(builtins).items() if isinstance(x, type))


def refusal_of(code: CodeType) -> str | None:
    """Why `code` may not run once for all examples, as far as its instructions say; None if it may."""
    known = _known.get(id(code))
    if known is not None and known[0]() is code:
        return known[1]
    found = _refusal(original(code) or code, True)
    remember(code, found)
    return found


def remember(code: CodeType, reason: str | None) -> None:
    """Why `code` is not to be tried from now on, or None."""
    _known[id(code)] = weakref.ref(code, partial(_known.pop, id(code))), reason


def _refusal(code: CodeType, is_outermost: bool) -> str | None:
    if code.co_flags & SUSPENDED and (is_outermost or code.co_name != "<genexpr>"):
        return "a generator or coroutine"
    free = code.co_freevars
    effects = imported("plaingrad.rewrite.effects")  # when there is a batch
    before = "", 0
    for name, arg in effects.Listing(code).instructions:
        if name in REFUSED:
            return f"the instruction {name}"
        if name == "IS_OP" and not _is_for_all(code, *before):
            return "a question whether one object is another"
        before = name, arg
        if name in ("STORE_DEREF", "DELETE_DEREF") and free and effects.names_of_cells(code)[arg] in free:
            return "an assignment to a variable of a function around it"
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return next((why for why in (_refusal(const, False) for const in inner) if why is not None), None)


def _is_for_all(code: CodeType, name: str, arg: int) -> bool:
    """Whether what an instruction loads is no value of an example: None, text or a builtin class, but not True."""
    if name == "LOAD_CONST":
        return code.co_consts[arg] is None or type(code.co_consts[arg]) in (str, type(...))
    return name == "LOAD_GLOBAL" and code.co_names[arg >> 1] in _CLASS_NAMES


def is_plain(t: type) -> bool:
    """Whether C code that has an instance of `t` enters no code of the program."""
    return not is_heap(t) or t is Mapped or not any(type(lookup(t, name)) is FunctionType for name in SPECIAL)


VALUES = (
    int,
    float,
    complex,
    str,
    bytes,
    np.ndarray,
    np.generic,
    np.dtype,
    type(None),
    slice,
    range,
    type,
    type(...),
)


def is_safe(x: Any) -> bool:
    """Whether a function that computes may have `x`: numbers, arrays, text and classes, and what is made of them."""
    t = type(x)
    if t is list or t is tuple or t is set or t is frozenset:
        return all(map(is_safe, x))
    if t is slice:
        return is_safe((x.start, x.stop, x.step))
    if t is dict:
        return all(map(is_safe, x)) and all(map(is_safe, x.values()))
    if isinstance(x, np.ndarray):
        return t is np.ndarray and x.dtype.kind in "fciub"
    if isinstance(x, tuple):
        return is_plain(t) and all(map(is_safe, x))
    if t is type(lambda: 0):
        return False
    return t is Mapped or (isinstance(x, VALUES) and not is_heap(t)) or (t is type and x in _CLASSES)


_CLASSES = frozenset(x for x in vars(builtins).values() if isinstance(x, type)) | frozenset(
    x for x in vars(np).values() if isinstance(x, type)
)


def is_elementwise(f: Any) -> bool:
    """Whether `f` is a ufunc of NumPy or SciPy, of one result, that computes element by element."""
    if type(f) is not np.ufunc or f.signature is not None or f.nout != 1:
        return False
    if getattr(np, f.__name__, None) is f or (f.__name__ == "divide" and f is np.true_divide):
        return True
    return getattr(_special(), f.__name__, None) is f


def _special() -> Any:
    import sys

    return sys.modules.get("scipy.special")
