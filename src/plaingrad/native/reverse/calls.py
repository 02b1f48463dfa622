"""Reverse mode of calls of the user's functions, whose pullbacks are derived on their own."""

from __future__ import annotations

from typing import Any

from numba.core import types

from plaingrad.native.analysis.effects import effects_of
from plaingrad.native.analysis.inner_gradients import InnerGradient, gradient_of
from plaingrad.native.program.ir import Const, Do, Let, Operand, Parts, Ref, Stmt, Var
from plaingrad.native.program.value_types import has_tangent, is_array, is_real
from plaingrad.native.reverse.contributions import Contributions


class CallsOfUsers(Contributions):
    """Calls of functions that are not inlined: recursive ones, and those of derived programs."""

    def call(self, s: Let) -> Parts:
        """A call of a function whose pullback is derived: it is run again on the way back, with its cotangents."""
        f, args, active = self.callee_of(s)
        if (of := gradient_of(f)) is not None:
            return self.call_of_gradient(s, of, args, active)
        signature = tuple(self.argument_type(a) for a in args)
        pullback = self.callee(f, signature, tuple(active))
        if hasattr(pullback, "backward"):
            return self.call_in_sweeps(s, f, pullback, args, active)
        once = effects_of(f, signature).once
        if any(isinstance(t, types.List) for t in signature):
            once = "is given a list that may have changed on the way back"
        if once:  # it is run again on the way back
            raise self.refuse(f"a call of `{f.__name__}`, which {once},", s.line)
        forward: list[Stmt] = []
        back: list[Stmt] = []
        held = [self.kept(a, forward, s.line) for a in args]
        again: list[Operand] = []
        for a, h in zip(
            args, held, strict=True
        ):  # a callee that writes its arguments must not write what is kept
            again.append(self.emit(back, "method", (h,), ("copy", ()), s.line) if h is not a else h)
        given = self.seeds_and_shadows(s, args, active)
        call = (Ref(pullback, f"{f.__name__}_pullback"), *again, *given)
        out = self.emit(back, "call", call, (), s.line)
        self.arrive(back, s, out, len(self.result_leaves(s.target)), args, active)
        return Parts([*forward, s], back)

    def call_of_gradient(
        self, s: Let, of: InnerGradient, args: tuple[Operand, ...], active: list[int]
    ) -> Parts:
        """A call that returns (results, cotangents): on the way back it is pushed forward along what has arrived."""
        if active and active[-1] >= len(of.signature):
            raise self.refuse("a gradient with a seed that has a derivative", s.line)
        forward: list[Stmt] = []
        after: list[Stmt] = []
        back: list[Stmt] = []
        leaves = self.result_leaves(s.target)
        for k, leaf in enumerate(leaves):
            if is_array(self.types[leaf]):
                after += [Let(leaf, "item", (Var(s.target), Const(k)), None, s.line), self.zeros(leaf)]
        held = [self.kept(a, forward, s.line) for a in args]
        positions = tuple(sorted({*of.positions, *active}))
        dots: list[Operand] = []
        for leaf in (*leaves[of.results :], *leaves[: of.results]):
            t = self.types[leaf]
            if leaf in self.active or is_array(t):
                dots.append(Var(f"{leaf}_b"))
            else:
                dots.append(self.zero(t))
        pushed = of.pushed(positions)
        call = (Ref(pushed, pushed.__name__), *held, *dots)
        out = self.emit(back, "call", call, (), s.line)
        first = 2 * of.results + len(positions)
        for k in active:
            part = self.emit(back, "item", (out, Const(first + positions.index(k))), None, s.line)
            self.types[part.name] = self.type_of(args[k])
            self.add(back, args[k], part, s.line)
        for leaf in leaves:
            if is_array(self.types[leaf]):
                back += self.cleared(leaf)
            elif leaf in self.active:
                back.append(Let(f"{leaf}_b", "copy", (self.zero(self.types[leaf]),), None, s.line))
        return Parts([*forward, s, *after], back)

    def call_in_sweeps(
        self, s: Let, f: Any, sweeps: Any, args: tuple[Operand, ...], active: list[int]
    ) -> Parts:
        """A call of a function that calls itself: its forward sweep, and on the way back its reverse sweep."""
        forward: list[Stmt] = []
        back: list[Stmt] = []
        call = (Ref(sweeps.forward, f"{f.__name__}_forward"), self.arena, *args)
        out = self.emit(forward, "call", call, (), s.line)
        count = self.rebuild(forward, s.target, out, 0, s.line)
        frame = self.fresh("frame")
        self.types[frame] = types.Array(types.int64, 1, "C")
        parts = [self.types[leaf] for leaf in self.result_leaves(s.target)]
        self.types[out.name] = types.Tuple((*parts, self.types[frame]))
        forward.append(Let(frame, "item", (out, Const(count)), None, s.line))
        given = self.seeds_and_shadows(s, args, active)
        call = (Ref(sweeps.backward, f"{f.__name__}_backward"), self.arena, Var(frame), *given)
        self.arrive(back, s, self.emit(back, "call", call, (), s.line), 0, args, active)
        return Parts(forward, back)

    def rebuild(self, out: list[Stmt], target: str, values_of: Var, place: int, line: int) -> int:
        """Let `target` be what the leaves from `place` on make; return the place behind them."""
        t = self.types.get(target)
        if not (isinstance(t, types.BaseTuple) and has_tangent(t)):
            out.append(Let(target, "item", (values_of, Const(place)), None, line))
            return place + 1
        parts = [f"{target}_p{k}" for k in range(len(t))]
        for part in parts:
            place = self.rebuild(out, part, values_of, place, line)
        out.append(Let(target, "tuple", tuple(map(Var, parts)), None, line))
        return place

    def seeds_and_shadows(self, s: Let, args: tuple[Operand, ...], active: list[int]) -> list[Operand]:
        """The cotangents of the parts of a call's result, and the shadows of its active arrays."""
        seeds: list[Operand] = [
            Var(f"{leaf}_b") if leaf in self.active else self.zero(self.types[leaf])
            for leaf in self.result_leaves(s.target)
            if is_real(self.types.get(leaf))
        ]
        shadows = [Var(f"{args[k].name}_b") for k in active if is_array(self.type_of(args[k]))]  # type: ignore[union-attr]
        return [*seeds, *shadows]

    def arrive(
        self, back: list[Stmt], s: Let, out: Var, place: int, args: tuple[Operand, ...], active: list[int]
    ) -> None:
        """Add the cotangents of a call's numbers, from `place` on in `out`; those of its result end."""
        for k in active:
            if is_real(self.type_of(args[k])):
                part = self.emit(back, "item", (out, Const(place)), None, s.line)
                self.types[part.name] = self.type_of(args[k])
                self.add(back, args[k], part, s.line)
                place += 1
        for leaf in self.result_leaves(s.target):
            if leaf in self.active and is_real(self.types.get(leaf)):
                back.append(Let(f"{leaf}_b", "copy", (self.zero(self.types[leaf]),), None, s.line))

    def call_for_effect(self, s: Do) -> Parts:
        """A call whose result is not used: it may still write arrays."""
        if any(self.is_active(Var(name)) for name in self.memory.outputs(s.call)):
            self.types.setdefault(s.call.target, types.none)
            return self.call(s.call)
        return Parts([s])
