"""What a version of CPython is described by."""

from collections.abc import Mapping
from dataclasses import dataclass, field

#: The hook of each argument of BINARY_OP, in the order of CPython's NB_ constants, the same since 3.11.
ARITHMETIC = ("add", "and_", "floordiv", "lshift", "matmul", "mul", "mod", "or_", "pow", "rshift", "sub", "truediv")
ARITHMETIC += ("xor", "iadd", "iand", "ifloordiv", "ilshift", "imatmul", "imul", "imod", "ior", "ipow", "irshift")
ARITHMETIC += ("isub", "itruediv", "ixor")


@dataclass(frozen=True)
class Version:
    """How one version of CPython spells what the rewriter has to know.

    Attributes:
        name: "3.11".
        actions: opcode name -> (verb, *parameters): what becomes of the instruction. The verbs are the methods of
            `plaingrad.rewrite.transform.Rewriting`; an opcode that is not listed is refused.
        arithmetic: the hook of each argument of BINARY_OP.
        unary_positive: the argument of CALL_INTRINSIC_1 that stands for `+x`.
        compare_shift: COMPARE_OP keeps the operator above this many bits of its argument.
        compare_casts: bit 16 of that argument asks for a bool.
        null_first: a callable is pushed above its NULL (until 3.12), not below it.
        precall: a PRECALL stands before each CALL.
        method_bit: LOAD_ATTR's lowest bit asks for a method; LOAD_METHOD is gone.
        ex_keywords: CALL_FUNCTION_EX always finds a fourth item, keywords or NULL, and has no flag.
        load_local: the cheapest way to read a local that is only looked at.
        final: opcodes after which control does not go on to the next instruction.
        pairs: super-instructions on two locals -> the two single ones.
        kept: (name, argument) -> bytes of instructions that were found to stay as they are where no cell moves.
    """

    name: str
    actions: Mapping[str, tuple]
    arithmetic: tuple = ARITHMETIC
    unary_positive: int | None = None
    compare_shift: int = 0
    compare_casts: bool = False
    null_first: bool = True
    precall: bool = False
    method_bit: bool = True
    ex_keywords: bool = False
    load_local: str = "LOAD_FAST"
    final: frozenset = frozenset()
    pairs: Mapping[str, tuple] = field(default_factory=dict)
    kept: dict[tuple, bytes] = field(init=False, repr=False, compare=False, default_factory=dict)
