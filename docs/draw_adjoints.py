"""Draws docs/how-to/adjoints.svg: what becomes of a fork and join, of a channel and of an allreduce on the way back.

On the left the program, from left to right; on the right its adjoint, from right to left: every arrow is turned round,
what is handed out is added up, and who sent now receives. `make map` draws; a test says whether the picture is current.
"""

from __future__ import annotations

import sys
from pathlib import Path

PICTURE = Path(__file__).resolve().parent / "how-to" / "adjoints.svg"
WIDTH, HEIGHT, HALF = 940, 640, 470
BOX, TALL = 84, 30  # of a box
STYLE = (
    "text { font: 13px system-ui, sans-serif; fill: #1b1f24; text-anchor: middle; } "
    ".head { font-weight: 600; text-anchor: start; } .say { fill: #57606a; text-anchor: start; } "
    ".box { fill: #ffffff; stroke: #57606a; } .sum { fill: #ddf4ff; stroke: #0969da; } "
    ".lane { fill: #eaeef2; stroke: none; } "
    "path { stroke: #57606a; stroke-width: 1.4; fill: none; marker-end: url(#tip); } "
    ".back { stroke: #cf222e; marker-end: url(#tip-back); }"
)
TIPS = "".join(
    f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    f'<polygon points="0,0 8,4 0,8" fill="{colour}"/></marker>'
    for name, colour in (("tip", "#57606a"), ("tip-back", "#cf222e"))
)
Place = tuple[float, float]  # the middle of a box


class Drawing:
    """The elements of the picture so far."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def text(self, what: str, at: Place, kind: str = "") -> None:
        """A line of text."""
        name = f' class="{kind}"' if kind else ""
        self.parts.append(f'<text{name} x="{at[0]:.0f}" y="{at[1]:.0f}">{what}</text>')

    def box(self, what: str, at: Place, kind: str = "box") -> None:
        """A box around its name."""
        x, y = at[0] - BOX / 2, at[1] - TALL / 2
        self.parts.append(
            f'<rect class="{kind}" x="{x:.0f}" y="{y:.0f}" width="{BOX}" height="{TALL}" rx="5"/>'
        )
        self.text(what, (at[0], at[1] + 4))

    def lane(self, y: float) -> None:
        """The ground of a thread or rank, in both halves."""
        for x in (20, HALF + 20):
            self.parts.append(
                f'<rect class="lane" x="{x}" y="{y - 22:.0f}" width="{HALF - 40}" height="44" rx="8"/>'
            )

    def both(self, places: dict[str, Place], names: dict[str, str], arrows: list[tuple[str, str]]) -> None:
        """A program and its adjoint: boxes with their names forwards and back ("+..." adds up), arrows turned round."""
        for start, end in arrows:
            self.arrow(places[start], places[end], "")
            (x1, y1), (x2, y2) = places[end], places[start]
            self.arrow((x1 + HALF, y1), (x2 + HALF, y2), "back")
        for key, (x, y) in places.items():
            for name, shift in zip(names[key].split("|"), (0, HALF), strict=True):
                self.box(name.lstrip("+"), (x + shift, y), "sum" if name.startswith("+") else "box")

    def arrow(self, start: Place, end: Place, kind: str) -> None:
        """From the edge of one box to the edge of another."""
        (x1, y1), (x2, y2) = start, end
        if x1 == x2:
            down = 1 if y2 > y1 else -1
            y1, y2 = y1 + down * TALL / 2, y2 - down * TALL / 2
        else:
            right = 1 if x2 > x1 else -1
            x1, x2 = x1 + right * BOX / 2, x2 - right * BOX / 2
        name = f' class="{kind}"' if kind else ""
        self.parts.append(f'<path{name} d="M {x1:.0f} {y1:.0f} L {x2:.0f} {y2:.0f}"/>')


def draw_fork_and_join(drawing: Drawing, top: float) -> None:
    """A map-reduce."""
    drawing.text("Fork and join: forwards", (24, top), "head")
    drawing.text("back: the join forks, the fork adds up", (HALF + 24, top), "head")
    middle, up, down = top + 75, top + 45, top + 105
    drawing.both(
        {"x": (60, middle), "1": (190, up), "2": (190, down), "join": (320, middle), "y": (420, middle)},
        {"x": "x|+x̄: sum", "1": "task 1|task 1", "2": "task 2|task 2", "join": "join|fork", "y": "y|ȳ"},
        [("x", "1"), ("x", "2"), ("1", "join"), ("2", "join"), ("join", "y")],
    )


def draw_channel(drawing: Drawing, top: float) -> None:
    """A value that one thread puts into a queue and another one takes out."""
    drawing.text("A channel: forwards", (24, top), "head")
    drawing.text("back: put waits for what get sends", (HALF + 24, top), "head")
    first, second = top + 45, top + 125
    drawing.lane(first)
    drawing.lane(second)
    drawing.both(
        {"f": (70, first), "put": (190, first), "get": (300, second), "g": (400, second)},
        {"f": "v = f(x)|x̄", "put": "put(v)|v̄ arrives", "get": "get()|v̄ leaves", "g": "y = g(v)|ȳ"},
        [("f", "put"), ("put", "get"), ("get", "g")],
    )


def draw_allreduce(drawing: Drawing, top: float) -> None:
    """A sum that every rank gets."""
    drawing.text("Allreduce (sum): forwards", (24, top), "head")
    drawing.text("back: an allreduce again, of cotangents", (HALF + 24, top), "head")
    rows = [top + 45, top + 95, top + 145]
    for y in rows:
        drawing.lane(y)
    places, names, arrows = {"sum": (235.0, rows[1])}, {"sum": "+sum|+sum"}, []
    for rank, y in enumerate(rows):
        places |= {f"x{rank}": (80.0, y), f"y{rank}": (390.0, y)}
        names |= {f"x{rank}": f"x{rank}|x̄{rank}", f"y{rank}": f"y|ȳ{rank}"}
        arrows += [(f"x{rank}", "sum"), ("sum", f"y{rank}")]
    drawing.both(places, names, arrows)


def picture() -> str:
    """The picture, as text."""
    drawing = Drawing()
    draw_fork_and_join(drawing, 30)
    draw_channel(drawing, 200)
    draw_allreduce(drawing, 400)
    drawing.text("grey: values; red: cotangents; blue: what arrives is added up", (24, HEIGHT - 20), "say")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        "<title>A fork and join, a channel and an allreduce, and their adjoints</title>",
        f"<defs>{TIPS}</defs>",
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#f6f8fa"/>',
        *drawing.parts,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    now = picture()
    if "--check" in sys.argv:
        is_current = PICTURE.read_text(encoding="utf-8") == now
        sys.exit(None if is_current else "docs/how-to/adjoints.svg is not current: make map")
    PICTURE.write_text(now, encoding="utf-8")
