"""The house: sizes of files, classes and functions, folders that can be surveyed, imports without circles.

A file, or a class or function in it, may be longer where that is one thing. Then a comment among the first lines of the
file says why: `# One thing: <why>`.
"""

import ast
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[1] / "src"
FILES = {".".join(path.relative_to(SOURCES).with_suffix("").parts): path for path in sorted(SOURCES.rglob("*.py"))}
PACKAGES = {name.removesuffix(".__init__"): name for name in FILES}
LINES_OF_FILE, LINES_OF_CLASS, LINES_OF_FUNCTION, FILES_IN_FOLDER = 500, 300, 60, 30
HEAD = 30  # lines in which the comment stands
MARK = "# One thing: "



def is_one_thing(text):
    return any(line.startswith(MARK) and line.removeprefix(MARK).strip() for line in text.splitlines()[:HEAD])


def too_long(name):
    """What is too long in a file."""
    text = FILES[name].read_text(encoding="utf-8")
    if is_one_thing(text):
        return []
    lines = len(text.splitlines())
    found = [f"the file has {lines} lines"] if lines > LINES_OF_FILE else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = node.end_lineno - node.lineno + 1
            if lines > (LINES_OF_CLASS if isinstance(node, ast.ClassDef) else LINES_OF_FUNCTION):
                found.append(f"{node.name} has {lines} lines")
    return found


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_too_long(name):
    assert not too_long(name)


def test_folders_can_be_surveyed():
    folders = {}
    for path in FILES.values():
        folders.setdefault(path.parent, []).append(path.name)
    assert not {str(folder): len(names) for folder, names in folders.items() if len(names) > FILES_IN_FOLDER}


def is_for_types(node):
    """Whether this is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def imported_by(name):
    """The modules of the package that a file imports, wherever in it; not those it needs for annotations only."""
    tree = ast.parse(FILES[name].read_text(encoding="utf-8"))
    skipped = {id(inner) for node in tree.body if is_for_types(node) for inner in ast.walk(node)}
    found = set()
    for node in ast.walk(tree):
        if id(node) in skipped or not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("plaingrad"):
            continue
        for alias in node.names:
            module = PACKAGES.get(f"{node.module}.{alias.name}") or PACKAGES.get(node.module)
            inside_out = module is not None and module.endswith("__init__") and name.startswith(module[: -len("__init__")])
            if module not in (None, name) and not inside_out:
                found.add(module)
    return found


def circles(edges):
    """The strongly connected parts of a graph that are more than one node (Tarjan 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = [stack.pop()]
            while part[-1] != node:
                part.append(stack.pop())
            if len(part) > 1:
                found.append(sorted(part))

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10 * len(edges) + limit)
    try:
        for node in edges:
            if node not in index:
                visit(node)
    finally:
        sys.setrecursionlimit(limit)
    return found


def test_no_files_import_each_other():
    assert circles({name: imported_by(name) for name in FILES}) == []


def test_a_circle_is_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]


def test_a_file_may_say_that_it_is_one_thing():
    assert is_one_thing('"""Doc."""\n\n# One thing: the table of all instructions.\n')
    assert not is_one_thing('"""Doc."""\n\n# One thing:\n') and not is_one_thing("# Something else\n")
