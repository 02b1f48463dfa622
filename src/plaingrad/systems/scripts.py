"""TorchScript: the tensors that a compiled function, method or module has, which no call shows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any


def is_script(f: Any) -> bool:
    """Whether TorchScript has compiled `f`."""
    if type(f).__name__ in ("ScriptFunction", "ScriptMethod"):
        return True
    jit = sys.modules.get("torch.jit")
    return jit is not None and isinstance(f, jit.ScriptModule)


def held_by_script(f: Any) -> list[Any]:
    """The tensors among the constants and attributes that the graph of `f` names; none if it is no script."""
    if not is_script(f):
        return []
    objects: dict[str, Any] = {}
    graph = f.inlined_graph
    owner = getattr(f, "_c", None) if type(f).__name__ != "ScriptMethod" else f.owner
    if owner is not None:
        objects[next(iter(graph.inputs())).debugName()] = owner
    tensor = sys.modules["torch"].Tensor
    return [x for x in _values(graph, objects) if isinstance(x, tensor)]


def _values(block: Any, objects: dict[str, Any]) -> Iterator[Any]:
    """Constants, and what attributes of known objects are; those are noted by the names of their values."""
    for node in block.nodes():
        kind = node.kind()
        if kind == "prim::Constant" and "value" in node.attributeNames():
            if node.kindOf("value") in ("t", "ts", "ival"):
                yield from _parts(getattr(node, node.kindOf("value"))("value"))
        elif kind == "prim::GetAttr":
            of = objects.get(node.input().debugName())
            if of is not None:
                x = of.getattr(node.s("name"))
                objects[node.output().debugName()] = x
                yield from _parts(x)
        for inner in node.blocks():
            yield from _values(inner, objects)


def _parts(x: Any) -> Iterator[Any]:
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (list, tuple)):
        for part in x:
            yield from _parts(part)
    else:
        yield x
