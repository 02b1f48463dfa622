"""Actions that are the same in every version described here."""

KEPT = """
BUILD_LIST BUILD_SLICE BUILD_STRING BUILD_TUPLE CHECK_EG_MATCH CHECK_EXC_MATCH COPY
COPY_FREE_VARS DELETE_DEREF DELETE_FAST DELETE_GLOBAL DELETE_NAME FOR_ITER IMPORT_FROM IMPORT_NAME IS_OP
JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT JUMP_FORWARD LIST_APPEND LOAD_BUILD_CLASS LOAD_CONST LOAD_DEREF
LOAD_FAST LOAD_GLOBAL LOAD_NAME MAKE_CELL MAKE_FUNCTION MATCH_MAPPING MATCH_SEQUENCE NOP POP_EXCEPT
POP_TOP PUSH_NULL RERAISE RETURN_GENERATOR RETURN_VALUE SEND SETUP_ANNOTATIONS STORE_DEREF
STORE_FAST STORE_GLOBAL STORE_NAME SWAP UNARY_NOT WITH_EXCEPT_START YIELD_VALUE
""".split()

CONSTANT = frozenset(["LOAD_CONST"])
#: What pushes a bool, so that a truth test right after it enters nobody's dunder.
TRUTHS = frozenset("COMPARE_OP CONTAINS_OP IS_OP UNARY_NOT CHECK_EXC_MATCH MATCH_MAPPING MATCH_SEQUENCE".split())
TEST = ("before_unless", TRUTHS, "meet", 1)

ACTIONS = dict.fromkeys(KEPT, ("keep",)) | {
    "RESUME": ("resume",),
    "PUSH_EXC_INFO": ("handler",),
    "END_ASYNC_FOR": ("keep_and_fetch",),
    "BINARY_OP": ("binary_op",),
    "UNARY_NEGATIVE": ("operator", "neg", 1),
    "UNARY_INVERT": ("operator", "invert", 1),
    "COMPARE_OP": ("compare_op",),
    "CONTAINS_OP": ("contains_op",),
    "STORE_SUBSCR": ("store", "setitem", 3),
    "DELETE_SUBSCR": ("delete_item",),
    "LOAD_ATTR": ("load_attr",),
    "STORE_ATTR": ("store_attr",),
    "DELETE_ATTR": ("before", "meet", 1),
    "CALL": ("call",),
    "CALL_FUNCTION_EX": ("call_function_ex",),
    "GET_ITER": ("before", "iterable", 1),
    "GET_YIELD_FROM_ITER": ("before", "iterable", 1),
    "LIST_EXTEND": ("before_unless", CONSTANT, "iterable", 1),
    "SET_UPDATE": ("before_unless", CONSTANT, "met_items", 1),
    "SET_ADD": ("before_unless", CONSTANT, "meet_all", 1),
    "MAP_ADD": ("before", "meet_all", 2),
    "BUILD_SET": ("display", 1),
    "BUILD_MAP": ("display", 2),
    "UNPACK_SEQUENCE": ("before_unless", CONSTANT, "iterable", 1),
    "UNPACK_EX": ("before_unless", CONSTANT, "iterable", 1),
    "DICT_MERGE": ("before", "meet", 1),
    "DICT_UPDATE": ("before", "meet_all", 1),
    "GET_AITER": ("before", "meet", 1),
    "GET_ANEXT": ("before", "meet", 1),
    "GET_AWAITABLE": ("around", "meet"),
    "GET_LEN": ("before", "meet", 1),
    "MATCH_CLASS": ("before", "meet", 3),
    "MATCH_KEYS": ("before", "meet", 2),
    "RAISE_VARARGS": ("raise_varargs",),
}

FINAL = frozenset(["RETURN_VALUE", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD"])
FINAL |= {"JUMP_BACKWARD_NO_INTERRUPT"}
