"""The rulebook as a table in Markdown: each function's derivative as its row says it."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import numpy as np

import plaingrad
from plaingrad import rulebook

PACKAGE = Path(plaingrad.__file__).parent
MEANING = {
    "scalar": "partial derivatives",
    "linear": "linear",
    "bilinear": "bilinear",
    "full": "rule",
    "composed": "composed",
    "no_tangent": "no tangent",
    "mover": "moves references",
    "higher_order": "calls its argument",
}


def rule_table() -> str:
    """One section for each file of rules, one line for each row in it, with all the functions that the row is about."""
    files: dict[str, dict[tuple[int, str], list[rulebook.Rule]]] = {}
    for rule in shipped():
        file, _, line = rule.source.rpartition(":")
        files.setdefault(file, {}).setdefault((int(line), rule.kind), []).append(rule)
    lines = []
    for file, rows in sorted(files.items()):
        lines += [
            f"## {title(file)}",
            "",
            "| functions | given as | forward | derivative |",
            "|---|---|---|---|",
        ]
        for (_, kind), rules in sorted(rows.items()):
            names = ", ".join(code(name) for name in sorted({name_of(rule.function) for rule in rules}))
            formulas = ", ".join(code(text) for text in sorted({formula(rule) for rule in rules}) if text)
            halves = ", ".join(sorted({forward(rule) for rule in rules}))
            lines.append(f"| {names} | {MEANING[kind]} | {halves} | {formulas} |")
        lines.append("")
    return "\n".join(lines)


def shipped() -> list[rulebook.Rule]:
    """The rules that are part of plaingrad, not those that a program has added."""
    return [rule for rule in rulebook.rules() if PACKAGE in Path(rule.source.rpartition(":")[0]).parents]


def title(file: str) -> str:
    """The path of a file of rules inside the package."""
    return f"`{Path(file).relative_to(PACKAGE).as_posix()}`"


def name_of(function: object) -> str:
    """The name by which a user knows `function`."""
    if isinstance(function, np.ufunc):
        return f"numpy.{function.__name__}"
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or repr(function)
    owner = getattr(function, "__objclass__", None)
    module = getattr(function, "__module__", None) or getattr(owner, "__module__", None) or ""
    module = module.removeprefix("_")
    return name if module in ("", "builtins") else f"{module}.{name}"


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
        return getattr(rule.rrule or rule.definition, "__name__", "")
    if rule.kind in ("no_tangent", "mover"):
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
