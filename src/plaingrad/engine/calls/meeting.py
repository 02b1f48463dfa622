"""Classes are met before C code enters their Python code: from then on that runs rewritten, while a level is open."""

from __future__ import annotations

from types import GeneratorType
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.class_keys import all_among, classes_of
from plaingrad.engine.compiled import core
from plaingrad.engine.users_code import adopt, earlier_frames

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level


class Meeting:
    """How one level meets objects."""

    level: Level
    met: dict[int, list[Any]]  # long heaps that were looked through

    def meet(self, o: Any) -> Any:
        """`o` itself, its class adopted; a class is adopted too."""
        t = type(o)
        try:
            known = t in adopt.known
        except TypeError:  # a class without hash
            known = False
        if not known:
            if earlier_frames.is_generator(t):
                earlier_frames.check(self.level, o)
                return o
            adopt.adopt(t)
        if isinstance(o, type):
            adopt.adopt(o)
        return o

    def meet_heap(self, heap: list[Any]) -> None:
        """Adopt the classes of a heap's entries; a long one is looked through at its first push or pop only."""
        if len(heap) > 64:
            if self.met.get(id(heap)) is heap:
                self.meet(heap[0])
                self.meet(heap[-1])
                return
            if len(self.met) > 256:
                self.met.clear()
            self.met[id(heap)] = heap
        self.meet_elements(heap)

    def meet_elements(self, container: Any) -> None:
        """Adopt the classes of a container's entries, before C code compares or hashes them."""
        if isinstance(container, (list, tuple, dict, set, frozenset)):
            if all_among(container, adopt.STATIC_SCALARS):
                return
            if core is not None and (type(container) is list or type(container) is tuple):
                core.meet_entries(container, adopt.known, adopt.adopt)
                return
            for t in classes_of(container):
                adopt.adopt(t)
                if t is GeneratorType:
                    continue
            if isinstance(container, (list, tuple)):
                for entry in container:
                    if type(entry) is tuple or type(entry) is list:
                        for t in classes_of(entry):
                            adopt.adopt(t)
                    elif type(entry) is np.ndarray:
                        break
