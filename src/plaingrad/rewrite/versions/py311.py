"""CPython 3.11: PRECALL before CALL, KW_NAMES, LOAD_METHOD, NULL below the callable."""

from plaingrad.rewrite.versions.common import ACTIONS, FINAL, TEST
from plaingrad.rewrite.versions.facts import Version

JUMPS = [f"POP_JUMP_{way}_IF_{what}" for way in ("FORWARD", "BACKWARD") for what in ("NONE", "NOT_NONE")]
TESTS = [f"POP_JUMP_{way}_IF_{what}" for way in ("FORWARD", "BACKWARD") for what in ("TRUE", "FALSE")]
TESTS += ["JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP", "UNARY_NOT"]

KEPT = """
ASYNC_GEN_WRAP BUILD_CONST_KEY_MAP IMPORT_STAR LIST_TO_TUPLE LOAD_ASSERTION_ERROR LOAD_CLASSDEREF LOAD_CLOSURE
PREP_RERAISE_STAR PRINT_EXPR
""".split()

VERSION = Version(
    name="3.11",
    actions=ACTIONS
    | dict.fromkeys(KEPT + JUMPS, ("keep",))
    | dict.fromkeys(TESTS, TEST)
    | {
        "KW_NAMES": ("call",),
        "PRECALL": ("call",),
        "UNARY_POSITIVE": ("operator", "pos", 1),
        "BINARY_SUBSCR": ("operator", "getitem", 2),
        "LOAD_METHOD": ("load_method",),
        "FORMAT_VALUE": ("format_value",),
        "BEFORE_WITH": ("before", "meet", 1),
        "BEFORE_ASYNC_WITH": ("before", "meet", 1),
        # gen.throw() that ends a delegation jumps over RESUME, straight to SEND's target.
        "SEND": ("keep_and_fetch_at_target",),
    },
    precall=True,
    method_bit=False,
    final=FINAL,
)
