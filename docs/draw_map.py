"""Draws docs/explanation/map.svg: the floors that import-linter holds, and a line for each import between rooms.

Where a room imports from another by way of a third one, too, the line is left out; so are imports for type checkers.
`make map` draws; a test says whether the picture is current.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "explanation" / "map.svg"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FLOORS: dict[str, list[list[str]]] = {  # of a package: its rooms, floor by floor, the top floor first
    contract["containers"][0]: [re.findall(r"\w+", layer) for layer in contract["layers"]]
    for contract in SETTINGS["tool"]["importlinter"]["contracts"]
    if contract["type"] == "layers"
}
WIDTH, HEIGHT, GAP, EDGE = 940, 28, 26, 22  # of the picture, of a box, between floors, around boxes
LETTER = 7.4  # the width of one at 13 pixels
STYLE = (
    "text { font: 13px system-ui, sans-serif; fill: #1b1f24; } .head { font-weight: 600; } "
    ".room { fill: #ffffff; stroke: #57606a; } .house { fill: #eaeef2; stroke: #8c959f; } "
    "path { stroke: #8c959f; stroke-width: 1.2; fill: none; }"
)
Place = tuple[float, float, float]  # of a box: its middle, its upper edge, its lower edge


@functools.cache
def modules_named(path: Path) -> tuple[str, ...]:
    """The modules that a file imports from, with dots; also those that it imports when they are first needed."""
    return tuple(names_in(ast.parse(path.read_text(encoding="utf-8"))))


def names_in(tree: ast.Module) -> Iterator[str]:
    """The modules, and what is in them, that a file names to import them at run time."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
            continue
        todo += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "imported":
            yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant))


def imports(package: str) -> dict[str, set[str]]:
    """What each room of a package imports from its others."""
    folder = ROOT.joinpath("src", *package.split("."))
    rooms = [room for floor in FLOORS[package] for room in floor]
    found: dict[str, set[str]] = {}
    for room in rooms:
        files = (folder / room).rglob("*.py") if (folder / room).is_dir() else [folder / f"{room}.py"]
        names = [name for path in files for name in modules_named(path) if name.startswith(f"{package}.")]
        found[room] = {name.split(".")[package.count(".") + 1] for name in names}.intersection(rooms) - {room}
    return found


def joined(package: str) -> list[tuple[str, str]]:
    """Which rooms have a line between them, the upper one first."""
    floor = {room: n for n, rooms in enumerate(FLOORS[package]) for room in rooms}
    direct = {a: {b for b in targets if floor[a] < floor[b]} for a, targets in imports(package).items()}
    far = {room: set(targets) for room, targets in direct.items()}
    for way in far:
        for targets in far.values():
            targets |= far[way] if way in targets else set()
    return [
        (upper, lower)
        for upper in direct
        for lower in sorted(direct[upper])
        if not any(lower in far[way] for way in direct[upper])
    ]


class Drawing:
    """The elements of the picture so far. Lines go behind rooms, and lines between houses behind houses."""

    def __init__(self) -> None:
        self.behind: list[str] = []
        self.houses: list[str] = []
        self.lines: list[str] = []
        self.rooms: list[str] = []

    def floors(self, package: str, left: float, top: float, width: float) -> float:
        """The rooms of a package, one floor under the other; where the last one ends."""
        places: dict[str, Place] = {}
        for rooms in with_houses_together(package):
            are_houses = f"{package}.{rooms[0]}" in FLOORS
            sizes = [width / len(rooms) - EDGE if are_houses else len(room) * LETTER + 20 for room in rooms]
            space = (width - sum(sizes)) / (len(rooms) + 1)
            starts = [left + (n + 1) * space + sum(sizes[:n]) for n in range(len(rooms))]
            bottom = top + HEIGHT
            if are_houses:
                ends = [
                    self.floors(f"{package}.{room}", x, top + HEIGHT + 8, size)
                    for room, x, size in zip(rooms, starts, sizes, strict=True)
                ]
                bottom = max(ends) + EDGE
            for room, x, size in zip(rooms, starts, sizes, strict=True):
                self.box(room, are_houses, (x, top, size, bottom - top))
                places[room] = x + size / 2, top, bottom
            top = bottom + GAP
        for upper, lower in joined(package):
            if places[upper][1] < places[lower][1]:  # houses that stand side by side need no line
                curve = line(places[upper], places[lower], left + width / 2)
                (self.behind if "." not in package else self.lines).append(curve)
        return top - GAP

    def box(self, name: str, is_house: bool, place: tuple[float, float, float, float]) -> None:
        """A room, or the frame around the rooms of a package."""
        x, y, width, height = place
        kind, boxes = ("house", self.houses) if is_house else ("room", self.rooms)
        boxes.append(
            f'<rect class="{kind}" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="5"/>'
        )
        at = f'class="head" x="{x + 14:.0f}" y="{y + 22:.0f}"'
        if not is_house:
            at = f'x="{x + width / 2:.0f}" y="{y + 19:.0f}" text-anchor="middle"'
        self.rooms.append(f"<text {at}>{name}</text>")


def line(upper: Place, lower: Place, middle: float) -> str:
    """From one room to another; around the rooms of floors in between, away from the middle."""
    x1, _, y1 = upper
    x2, y2, _ = lower
    passed = round((y2 - y1 - GAP) / (HEIGHT + GAP))  # floors
    away = min(60 + 20 * passed, 140) * (passed > 0) * (1 if x1 + x2 >= 2 * middle else -1)
    third = (y2 - y1) / 3
    curve = f"C {x1 + away:.0f} {y1 + third:.0f} {x2 + away:.0f} {y2 - third:.0f} {x2:.0f} {y2:.0f}"
    return f'<path d="M {x1:.0f} {y1:.0f} {curve}"/>'


def with_houses_together(package: str) -> list[list[str]]:
    """The floors of a package; houses on floors that follow on one another are drawn side by side."""
    drawn: list[list[str]] = []
    for floor in FLOORS[package]:
        is_house = all(f"{package}.{room}" in FLOORS for room in floor)
        if drawn and is_house and all(f"{package}.{room}" in FLOORS for room in drawn[-1]):
            drawn[-1] = drawn[-1] + floor
        else:
            drawn.append(floor)
    return drawn


def picture() -> str:
    """The picture, as text."""
    drawing = Drawing()
    height = drawing.floors("plaingrad", EDGE, EDGE, WIDTH - 2 * EDGE) + EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">',
        "<title>The floors of plaingrad: a room imports only from those below it</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="#f6f8fa"/>',
        *drawing.behind,
        *drawing.houses,
        *drawing.lines,
        *drawing.rooms,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    now = picture()
    if "--check" in sys.argv:
        is_current = PICTURE.read_text(encoding="utf-8") == now
        sys.exit(None if is_current else "docs/explanation/map.svg is not current: make map")
    PICTURE.write_text(now, encoding="utf-8")
