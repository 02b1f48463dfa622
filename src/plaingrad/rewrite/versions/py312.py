"""CPython 3.12: no PRECALL, LOAD_METHOD folded into LOAD_ATTR, slices, super and intrinsics have instructions."""

from plaingrad.rewrite.versions.common import ACTIONS, FINAL, TEST
from plaingrad.rewrite.versions.facts import Version

#: Shared with 3.13.
KEPT = """
BUILD_CONST_KEY_MAP CALL_INTRINSIC_2 CLEANUP_THROW END_FOR LOAD_ASSERTION_ERROR LOAD_FAST_AND_CLEAR LOAD_FAST_CHECK
LOAD_FROM_DICT_OR_DEREF LOAD_FROM_DICT_OR_GLOBALS LOAD_LOCALS POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE RETURN_CONST
""".split()

#: Shared with 3.13.
NEW = dict.fromkeys(KEPT, ("keep",)) | {
    "BINARY_SUBSCR": ("operator", "getitem", 2),
    "BINARY_SLICE": ("binary_slice",),
    "STORE_SLICE": ("store_slice",),
    "LOAD_SUPER_ATTR": ("load_super_attr",),
    "CALL_INTRINSIC_1": ("intrinsic",),
    "BEFORE_WITH": ("before", "meet", 1),
    "BEFORE_ASYNC_WITH": ("before", "meet", 1),
    # where gen.throw() that ends a delegation arrives too, without a RESUME
    "END_SEND": ("end_send",),
}

VERSION = Version(
    name="3.12",
    actions=ACTIONS
    | NEW
    | dict.fromkeys(["POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "UNARY_NOT"], TEST)
    | {"LOAD_CLOSURE": ("keep",), "KW_NAMES": ("call",), "FORMAT_VALUE": ("format_value",)},
    unary_positive=5,
    compare_shift=4,
    final=FINAL | {"RETURN_CONST"},
)
