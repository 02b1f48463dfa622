"""CPython 3.15: GET_ITER pushes two items and serves `yield from`; generator expressions ask for their iterator."""

from dataclasses import replace

from plaingrad.rewrite.versions import py314

GONE = ("GET_YIELD_FROM_ITER",)

VERSION = replace(
    py314.VERSION,
    name="3.15",
    actions={name: action for name, action in py314.VERSION.actions.items() if name not in GONE},
)
