"""The syntax tree of a function, from its source file: believed only if it compiles to the function's own code."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import tokenize
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

FunctionNode = ast.FunctionDef | ast.Lambda


def tree_of(f: FunctionType) -> FunctionNode | None:
    """The node that `f` was compiled from; None where there is no source, or it is no longer that of `f`."""
    return node_of(f.__code__)


def node_of(code: CodeType) -> FunctionNode | None:
    """The node that a code object was compiled from, or None."""
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    if not lines:
        return None
    key = _key(code)
    return _nodes(code.co_filename, "".join(lines)).get(key) or _nodes(
        code.co_filename, _alone(code, lines)
    ).get(key)


def _alone(code: CodeType, lines: list[str]) -> str:
    """The text of one function, each line and column at its place: of a file that is not Python as a whole.

    A method stands in a class of the same name: private names, and a flag of newer CPythons, depend on that.
    """
    start = code.co_firstlineno - 1
    try:
        block = "".join(inspect.getblock(lines[start:]))
    except (tokenize.TokenError, SyntaxError, IndexError):
        return ""
    indented = block[:1].isspace() and start > 0
    if not indented:
        return "\n" * start + block
    around = code.co_qualname.rpartition(".")[0].rpartition(".")[2]
    head = f"class {around}:\n" if around.isidentifier() else "if 1:\n"
    return "\n" * (start - 1) + head + block


def _key(code: CodeType) -> Any:
    """What tells code objects of one file apart; the file's name is left out, which may be written in other ways."""
    return code.replace(co_filename="")


@functools.lru_cache(64)
def _nodes(filename: str, text: str) -> dict[Any, FunctionNode]:
    """The functions in a file: code without its file's name -> node."""
    try:
        tree = ast.parse(text)
        whole = compile(text, filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return {}
    codes: dict[Any, list[CodeType]] = {}
    for code in _codes(whole):
        codes.setdefault((code.co_name, code.co_firstlineno), []).append(code)
    nodes: dict[Any, list[FunctionNode]] = {}
    for node in _functions(tree):
        first = min([node.lineno, *[d.lineno for d in getattr(node, "decorator_list", ())]])
        nodes.setdefault((getattr(node, "name", "<lambda>"), first), []).append(node)
    return {
        _key(code): node
        for place, found in codes.items()
        if len(found) == len(nodes.get(place, ()))
        for code, node in zip(_in_text(found), nodes[place], strict=False)
    }


def _in_text(codes: list[CodeType]) -> list[CodeType]:
    """Code objects that begin in one line, as they follow each other in it; none if that is not known."""
    if len(codes) == 1:
        return codes
    begins = [_begin(code) for code in codes]
    if None in begins or len(set(begins)) < len(begins):
        return []
    return [code for _, code in sorted(zip(begins, codes, strict=True), key=lambda pair: pair[0])]


def _begin(code: CodeType) -> Any:
    """The line and column of the first thing that is computed, None if it is not known."""
    return min([(p[0], p[2]) for p in code.co_positions() if p[0] and p[2]], default=None)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes(inner)


def _functions(tree: ast.AST) -> Iterator[FunctionNode]:
    found = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Lambda))]
    yield from sorted(found, key=lambda node: (node.lineno, node.col_offset))


def names_read(node: Any) -> set[str]:
    """The names in a function's text, at any depth."""
    body = node.body if isinstance(node.body, list) else [node.body]
    found = {n.id for part in body for n in ast.walk(part) if isinstance(n, ast.Name)}
    return found | {
        name for part in body for n in ast.walk(part) if isinstance(n, ast.Nonlocal) for name in n.names
    }


def names_set(node: Any) -> set[str]:
    """The local variables of a function."""
    a = node.args
    found = {p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)}
    found |= {p.arg for p in (a.vararg, a.kwarg) if p is not None}
    free: set[str] = set()
    todo = list(node.body) if isinstance(node.body, list) else [node.body]
    while todo:
        n = todo.pop()
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            found.add(n.id)
        if isinstance(n, (ast.Nonlocal, ast.Global)):
            free |= set(n.names)
        if isinstance(n, ast.FunctionDef):
            found.add(n.name)
        elif not isinstance(n, ast.Lambda):
            todo += ast.iter_child_nodes(n)
    return found - free
