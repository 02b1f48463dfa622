"""Cells of a notebook: no files, and functions that are defined again. Search: notebook. Page: docs/how-to/notebooks.md."""

import code

CELLS = [
    "import plaingrad\nscale = 3.0\n",
    "def f(x):\n    return scale * x * x\n",
    "first = plaingrad.grad(f)(2.0)\n",
    "scale = 5.0\nsecond = plaingrad.grad(f)(2.0)\n",
    "def f(x):\n    return x * x * x\n",
    "third = plaingrad.grad(f)(2.0)\nshown = plaingrad.grad(lambda d: d['a'] ** 2)({'a': 1.0})\n",
]
notebook = code.InteractiveInterpreter()
for n, cell in enumerate(CELLS):
    notebook.runcode(compile(cell, f"<cell {n}>", "exec"))
assert [notebook.locals[name] for name in ("first", "second", "third")] == [12.0, 20.0, 12.0]
assert notebook.locals["shown"] == {"a": 2.0}
