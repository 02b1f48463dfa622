"""Rematerialisation in stencils: what the way back reads is computed again where that is cheap, else kept."""

from __future__ import annotations

from numba.core import types

from plaingrad.native.loops.if_conversion import Declined
from plaingrad.native.loops.stencil_ranges import Ranges
from plaingrad.native.program.ir import For, Let, Loop, Operand, Stmt, Var, assigns
from plaingrad.native.reverse.recomputation import is_recomputable


class ValuesAgain(Ranges):
    """What one iteration of a stencil reads on the way back."""

    def slice_of(self, wanted: list[Operand]) -> list[Let]:
        """The statements of the pool that `wanted` needs."""
        found: set[str] = set()
        todo = [a.name for a in wanted if isinstance(a, Var)]
        while todo:
            name = todo.pop()
            if name in found or name not in self.made:
                continue
            found.add(name)
            args = self.made[name].args
            todo += [a.name for a in (args[:1] if name in self.each.places else args) if isinstance(a, Var)]
        return [self.made[name] for name in sorted(found, key=self.rank.__getitem__)]

    def _held(self) -> dict[str, Operand]:
        """Copies, made in front of the nest, of the arrays that its reverse reads and that may be overwritten by then.

        Raises:
            Declined: an array that is read may be one that the nest stores to; or copying would cost more than the
                nest, which may run over another part of the array every time.
        """
        rt, each = self.rt, self.each
        wanted = [*each.own.values(), *[bar for group in each.gathers.values() for bar in group.values()]]
        wanted += [
            *each.numbers.values(),
            *[bar for _, bar in each.loose],
            *[read.args[1] for read, _ in each.loose],
        ]
        sources = {
            x.args[0].name for x in self.slice_of(wanted) if x.op == "item" and isinstance(x.args[0], Var)
        }
        values = {name for name in sources if isinstance(rt.types.get(name), types.Array)}
        stored = sorted({access.array.name for access in self.nest.writes})
        read = values | each.gathers.keys() | {x.args[0].name for x, _ in each.loose}  # type: ignore[union-attr]
        for k, name in enumerate(stored):
            for other in sorted(read | set(stored[:k])):
                same = name == other and name in self.nest.in_place
                if (
                    name not in rt.values.owned
                    and not same
                    and not rt.values.distinct.are(name, other, self.loop)
                ):
                    raise Declined
        held: dict[str, Operand] = {}
        for name in sorted(values):
            copy = rt.kept(Var(name), self.forward, self.line)
            if copy != Var(name):
                held[name] = copy
        if held and not (self._is_steady() and all(rt.types[name].ndim == self.nest.rank for name in held)):
            raise Declined
        return held

    def kept_in(self, wanted: list[Operand]) -> list[Var]:
        """The arrays that `wanted` reads around the target and that every iteration of the loop outside has anew."""
        rt, found = self.rt, set()
        around = next((s for s in reversed(rt.enclosing) if isinstance(s, (For, Loop))), None)
        for x in self.slice_of(wanted):
            if around is None or x.target not in self.each.places:
                continue
            name = x.args[0].name  # type: ignore[union-attr]
            if isinstance(rt.types.get(name), types.Array) and rt.values.is_whole(name):
                held = self.held.get(name)
                found |= {held.name} if isinstance(held, Var) else {name} if assigns(around, name) else set()
        return [Var(name) for name in sorted(found)]

    def _is_steady(self) -> bool:
        """Whether the nest has the same bounds whenever it runs."""
        bounds = [a for axis in self.nest.axes for a in (axis.start, axis.stop)]
        named = {a.name for a in bounds if isinstance(a, Var)}
        for s in self.slice_of(bounds):
            named |= {a.name for a in s.args if isinstance(a, Var)}
        return all(name in self.nest.inside or self.rt.values.is_steady(name) for name in named)

    def _bound(self, x: Operand) -> Operand:
        """A bound of a loop, computed again in front of the loops."""
        if not isinstance(x, Var) or x.name not in self.nest.inside:
            return x
        names: dict[str, Operand] = {}
        counters = set(self.nest.counters)
        for s in self.slice_of([x]):
            if any(isinstance(a, Var) and a.name in counters for a in s.args) or not is_recomputable(
                self.rt, s
            ):
                raise Declined
            names[s.target] = self._copied(s, names, self.head)
        if x.name not in names:
            raise Declined
        return names[x.name]

    def _copied(self, s: Let, names: dict[str, Operand], out: list[Stmt]) -> Var:
        """The statement `s` again, under a new name."""
        args = tuple(names.get(a.name, a) if isinstance(a, Var) else a for a in s.args)
        new = self.rt.emit(out, s.op, args, s.detail, s.line)
        if s.target in self.rt.types:
            self.rt.types[new.name] = self.rt.types[s.target]
        return new
