"""The rulebook as a table in Markdown: each function's derivative as its row says it."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import numpy as np

import plaingrad
from plaingrad import rulebook

PACKAGE = Path(plaingrad.__file__).parent
# What a reader looks for, and the files of rules about it: a path inside `plaingrad/rules`, or how such paths begin.
TOPICS = {
    "Elementwise mathematics": ("elementwise", "special", "numpy/entire", "numpy/interpolation"),
    "Ufuncs and their methods": ("numpy/ufuncs",),
    "Sums, products, extremes, statistics": (
        "numpy/reductions",
        "numpy/factors",
        "numpy/order_statistics",
        "python/averages",
    ),
    "Matrix products and einsum": ("numpy/products", "numpy/einsum"),
    "Linear algebra": ("numpy/linalg", "numpy/decompositions", "numpy/norms"),
    "Fourier transforms": ("numpy/fourier",),
    "Indexing, selecting, sorting": ("numpy/indexing", "numpy/sorting", "numpy/writing"),
    "Shapes and views": ("numpy/shapes",),
    "New arrays": ("numpy/creation", "numpy/joining", "numpy/diagonals"),
    "Masked arrays": ("numpy/masked",),
    "Random numbers": ("numpy/random_numbers", "python/randomness"),
    "Operators of arrays, and other functions of NumPy": ("numpy/",),
    "Numbers": ("python/arithmetic", "python/constructors"),
    "Operators as functions": ("python/operators", "python/calls"),
    "Containers and iteration": ("python/containers", "python/iteration"),
    "Classes, objects, references": ("python/objects", "internals"),
    "Text and bytes": ("python/text",),
    "Tasks, threads, signals": ("concurrency",),
    "Other processes": ("processes",),
    "scipy.special: gamma, beta, zeta": (
        "scipy/special/gamma",
        "scipy/special/incomplete",
        "scipy/special/zeta",
    ),
    "scipy.special: Bessel and Airy functions": (
        "scipy/special/bessel",
        "scipy/special/orders",
        "scipy/special/airy",
    ),
    "scipy.special: elliptic and hypergeometric functions, orthogonal polynomials": (
        "scipy/special/elliptic",
        "scipy/special/hypergeometric",
        "scipy/special/polynomials",
        "scipy/special/harmonics",
    ),
    "scipy.special: distributions and their inverses": (
        "scipy/special/distributions",
        "scipy/special/noncentral",
        "scipy/special/inverses",
        "scipy/special/private",
        "scipy/special/normal",
    ),
    "scipy.special: other functions": ("scipy/",),
    "pandas": ("pandas/",),
    "bottleneck": ("bottleneck",),
    "Single packages": ("packages/",),
    "matplotlib": ("matplotlib",),
    "pydantic": ("pydantic",),
}
# As in `Fraction._operator_fallbacks.<locals>.forward`, whose name is `__add__`.
MADE_INSIDE = re.compile(r"\.\w+\.<locals>\.\w+$")
MEANING = {
    "scalar": "partial derivatives",
    "linear": "linear",
    "bilinear": "bilinear",
    "full": "rule",
    "composed": "composed",
    "no_tangent": "no tangent",
    "mover": "moves references",
    "inspector": "moves references, compares or hashes them",
    "higher_order": "calls its argument",
    "outside": "one level out",
    "asks": "asks about its argument",
}


def rule_table() -> str:
    """One section for each topic, one line for each row about it, with all the functions that the row is about."""
    topics: dict[str, dict[tuple[str, int, str], list[rulebook.Rule]]] = {name: {} for name in TOPICS}
    for rule in shipped():
        file, _, line = rule.source.rpartition(":")
        topics[topic(file)].setdefault((file, int(line), rule.kind), []).append(rule)
    lines = []
    for name, rows in topics.items():
        lines += [
            f"### {name}",
            "",
            "| functions | given as | forward | derivative |",
            "|---|---|---|---|",
        ]
        for (_, _, kind), rules in sorted(rows.items()):
            names = ", ".join(code(name) for name in sorted({name_of(rule.function) for rule in rules}))
            formulas = ", ".join(code(text) for text in sorted({formula(rule) for rule in rules}) if text)
            halves = ", ".join(sorted({forward(rule) for rule in rules}))
            lines.append(f"| {names} | {MEANING[kind]} | {halves} | {formulas} |")
        lines.append("")
    return "\n".join(lines)


def shipped() -> list[rulebook.Rule]:
    """plaingrad's rules, not a program's; and those for functions of others, not for helpers of other rules."""
    ours = [rule for rule in rulebook.rules() if PACKAGE in Path(rule.source.rpartition(":")[0]).parents]
    return [rule for rule in ours if not name_of(rule.function).startswith("plaingrad.")]


def topic(file: str) -> str:
    """The first topic that names a file of rules."""
    path = Path(file).relative_to(PACKAGE / "rules").with_suffix("").as_posix()
    return next(name for name, paths in TOPICS.items() if path.startswith(paths))


def name_of(function: object) -> str:
    """The name by which a user knows `function`."""
    if isinstance(function, np.ufunc) or type(function).__name__ == "MultiUFunc":
        return f"{home_of(function)}.{function.__name__}"
    function = getattr(function, "__func__", function)  # of a static method
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or repr(function)
    name = MADE_INSIDE.sub(f".{getattr(function, '__name__', '')}", name)
    owner = getattr(function, "__objclass__", None)
    module = getattr(function, "__module__", None) or getattr(owner, "__module__", None) or ""
    module = module.removeprefix("_")
    return name if module in ("", "builtins") else f"{module}.{name}"


def home_of(function: object) -> str:
    """The module of a ufunc, which does not know it."""
    rule = rulebook.find(function)
    return (
        "scipy.special" if rule is not None and "/rules/scipy/" in rule.source.replace("\\", "/") else "numpy"
    )


def forward(rule: rulebook.Rule) -> str:
    """Where the forward half of a rule comes from: written (in chunks too), or what the row says, or transposed."""
    if rule.chunked_frule is not None:
        return "written, in chunks"
    if rule.frule is not None:
        return "written"
    if rule.kind == "full":
        return "transposed"
    return "from the row" if rule.kind in ("scalar", "linear", "bilinear") else ""


def formula(rule: rulebook.Rule) -> str:
    """What the row says, as it is written there."""
    file, _, line = rule.source.rpartition(":")
    if rule.kind in ("full", "composed"):
        name = getattr(rule.rrule or rule.definition, "__name__", "")
        return "" if name == "<lambda>" else name
    if rule.kind in ("no_tangent", "mover", "inspector"):
        return ""
    call = calls_in(file).get(int(line))
    if call is None:
        return ""
    given = call.args[2:] if rule.kind == "scalar" else call.args[1:]
    return ", ".join(ast.unparse(arg.body if isinstance(arg, ast.Lambda) else arg) for arg in given)


@functools.cache
def calls_in(file: str) -> dict[int, ast.Call]:
    """The statements of a file that are calls, by line."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    calls = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                calls.setdefault(line, node.value)
    return calls


def code(text: str) -> str:
    """`text` set as code in a cell of a table."""
    return "`" + text.replace("|", "\\|") + "`"


if __name__ == "__main__":
    print(rule_table())
