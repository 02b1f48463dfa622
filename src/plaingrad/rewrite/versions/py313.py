"""CPython 3.13: NULL above the callable, CALL_KW, TO_BOOL, formatting in steps, instructions on two locals."""

from plaingrad.rewrite.versions.common import ACTIONS, FINAL, TEST
from plaingrad.rewrite.versions.facts import Version
from plaingrad.rewrite.versions.py312 import NEW as NEW_IN_3_12

#: Shared with 3.14.
KEPT = """
LOAD_FAST_LOAD_FAST POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE SET_FUNCTION_ATTRIBUTE STORE_FAST_LOAD_FAST
STORE_FAST_STORE_FAST
""".split()

#: Shared with 3.14.
NEW = dict.fromkeys(KEPT, ("keep",)) | {
    "CALL_KW": ("call",),
    "TO_BOOL": TEST,
    "CONVERT_VALUE": ("before", "text", 1),
    "FORMAT_SIMPLE": ("before_unless", frozenset(["CONVERT_VALUE"]), "text", 1),
    "FORMAT_WITH_SPEC": ("before", "text", 2),
}

#: Shared with 3.14.
PAIRS = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}

VERSION = Version(
    name="3.13",
    actions=ACTIONS | NEW_IN_3_12 | NEW,
    unary_positive=5,
    compare_shift=5,
    compare_casts=True,
    null_first=False,
    final=FINAL | {"RETURN_CONST"},
    pairs=PAIRS,
)
