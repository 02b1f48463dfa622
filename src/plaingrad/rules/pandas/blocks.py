"""Blocks of pandas: compiled objects that hold an array as it is, and give the same one, or views of it, out again.

So the numbers of a Series or a frame stay what they are, memory whose owner is known, and its arithmetic, which is
Python, is followed like a program's own. Compiled code that is given such an object is refused as if it had the array.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from plaingrad.rulebook import Rule
from plaingrad.rules.pandas import HOLDERS

# Methods of compiled classes that make no new numbers.
METHODS = {
    "Block": ("slice_block_rows",), "NumpyBlock": ("slice_block_rows", "getitem_block_index"),
    "NDArrayBackedBlock": ("slice_block_rows",), "BlockManager": ("get_slice", "_rebuild_blknos_and_blklocs"),
    "BlockValuesRefs": ("add_reference", "add_index_reference", "has_reference"),
}  # fmt: skip
OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "true_divide": "truediv", "divide": "truediv",
    "floor_divide": "floordiv", "remainder": "mod", "power": "pow", "matmul": "matmul", "divmod": "divmod",
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "equal": "eq", "not_equal": "ne", "less": "lt",
    "less_equal": "le", "greater": "gt", "greater_equal": "ge",
}  # fmt: skip
TURNED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
OF_ONE = {"negative": "__neg__", "positive": "__pos__", "absolute": "__abs__"}


def operated(o: Any, ufunc: Any, method: Any, *inputs: Any, **options: Any) -> Any:
    """What the object's operator says that a ufunc stands for; NotImplemented if there is none."""
    name = OPERATORS.get(ufunc.__name__)
    if method != "__call__" or options or ufunc.nin > 2:
        return NotImplemented
    if ufunc.__name__ in OF_ONE:
        operator = getattr(o, OF_ONE[ufunc.__name__], None)
        return NotImplemented if operator is None else operator()
    if name is None:
        return NotImplemented
    forwards = inputs[0] is o
    operator = getattr(o, f"__{name}__" if forwards else f"__{TURNED.get(name, 'r' + name)}__", None)
    return NotImplemented if operator is None else operator(inputs[1] if forwards else inputs[0])


def rules() -> Iterable[Rule]:
    """Constructors keep references; what else reads a block reaches its array through it."""
    source = f"{__file__}:1"
    classes = [name.rpartition(".") for name in HOLDERS] + [("pandas._libs.internals", ".", "BlockValuesRefs")]
    for module, _, name in classes:
        cls: Any = getattr(sys.modules.get(module), name, None)
        if cls is not None:
            methods = [cls.__dict__.get(method) for method in ("__init__", *METHODS.get(name, ()))]
            for function in (cls, cls.__new__, *methods):
                if function is not None:
                    yield Rule(function, "mover", source=source)
    dispatch: Any = sys.modules.get("pandas._libs.ops_dispatch")
    if dispatch is not None:
        function = dispatch.maybe_dispatch_ufunc_to_dunder_op
        yield Rule(function, "composed", definition=operated, mutates=True, source=source)
