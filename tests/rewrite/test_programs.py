"""Each program of the corpus does the same thing plainly and rewritten: value, error, message, lines."""

import ast
import functools
import types
import warnings
from pathlib import Path

import pytest
from plaingrad.rewrite import PLAIN, rewrite_function, rewritten
from tests.rewrite.support import deep, outcome, rewriting, using

FILES = sorted((Path(__file__).parent / "corpus").iterdir())


def programs():
    for path in FILES:
        if path.suffix not in (".py", ".txt"):
            continue
        try:
            tree = ast.parse(path.read_text())
        except SyntaxError:  # newer than this Python
            continue
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("case_"):
                yield pytest.param(path, node.name, id=f"{path.stem}-{node.name[5:]}")


@functools.cache
def namespace(path, change=lambda code: code):
    module = types.ModuleType("corpus")
    with warnings.catch_warnings(action="ignore"):  # newer compilers dislike some of the older programs
        code = compile(path.read_text(), str(path), "exec")
    exec(change(code), module.__dict__)
    return module.__dict__


PROGRAMS = list(programs())


def expected(path, name):
    return outcome(namespace(path)[name], str(path))


@pytest.mark.parametrize(("path", "name"), PROGRAMS)
def test_the_function_alone_is_rewritten(path, name):
    with using(PLAIN):
        assert outcome(rewrite_function(namespace(path)[name]), str(path)) == expected(path, name)


@pytest.mark.parametrize("form", ["fused", "expressions"])
@pytest.mark.parametrize(("path", "name"), PROGRAMS)
def test_every_function_it_calls_is_rewritten(path, name, form):
    with using(rewriting(form)):
        assert outcome(rewrite_function(namespace(path)[name], form), str(path)) == expected(path, name)


@pytest.mark.parametrize(("path", "name"), PROGRAMS)
def test_the_whole_module_is_rewritten(path, name):
    assert outcome(namespace(path, deep)[name], str(path)) == expected(path, name)


@pytest.mark.parametrize("path", [p for p in FILES if p.suffix == ".py"], ids=lambda p: p.stem)
def test_module_code_alone_is_rewritten(path):
    ours, theirs = namespace(path, rewritten), namespace(path)
    assert ours.keys() == theirs.keys()
