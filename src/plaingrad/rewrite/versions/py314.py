"""CPython 3.14: subscription is a BINARY_OP, `with` looks up special methods, locals are borrowed, t-strings."""

from plaingrad.rewrite.versions.common import ACTIONS, FINAL
from plaingrad.rewrite.versions.facts import ARITHMETIC, Version
from plaingrad.rewrite.versions.py312 import NEW as NEW_IN_3_12
from plaingrad.rewrite.versions.py313 import NEW as NEW_IN_3_13
from plaingrad.rewrite.versions.py313 import PAIRS

KEPT = """
BUILD_INTERPOLATION BUILD_TEMPLATE LOAD_COMMON_CONSTANT LOAD_FAST_BORROW LOAD_FAST_BORROW_LOAD_FAST_BORROW
LOAD_SMALL_INT NOT_TAKEN POP_ITER
""".split()

GONE = """
BEFORE_ASYNC_WITH BEFORE_WITH BINARY_SUBSCR BUILD_CONST_KEY_MAP LOAD_ASSERTION_ERROR RETURN_CONST
""".split()

ALL = ACTIONS | NEW_IN_3_12 | NEW_IN_3_13 | dict.fromkeys(KEPT, ("keep",)) | {"LOAD_SPECIAL": ("load_special",)}

VERSION = Version(
    name="3.14",
    actions={name: action for name, action in ALL.items() if name not in GONE},
    arithmetic=(*ARITHMETIC, "getitem"),
    unary_positive=5,
    compare_shift=5,
    compare_casts=True,
    null_first=False,
    ex_keywords=True,
    load_local="LOAD_FAST_BORROW",
    final=FINAL,
    pairs=PAIRS | {"LOAD_FAST_BORROW_LOAD_FAST_BORROW": ("LOAD_FAST_BORROW", "LOAD_FAST_BORROW")},
)
