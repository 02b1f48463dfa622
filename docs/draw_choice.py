"""Draws `docs/how-to/choice.svg`: which function, which mode and which tier a task needs. `make map` runs it."""

from __future__ import annotations

from html import escape
from pathlib import Path

FILE = Path(__file__).parent / "how-to" / "choice.svg"
WIDTH, LINE, LEFT, RIGHT, TOP = 720, 30, 16, 400, 20
TREES = (
    (
        "Which function?",
        (
            ("one number out, its slopes", "grad, value_and_grad"),
            ("many numbers out, all slopes", "jacobian, sparse_jacobian"),
            ("second derivatives", "hessian, sparse_hessian; hvp for a product"),
            ("one direction in, or one weighting out", "jvp, linearize; vjp"),
            ("one number in, many orders", "derivative(f, order=n), taylor"),
            ("parameters in globals or objects", "grad_wrt(f, [W, model]), watch"),
            ("a batch, or gradients per example", "vmap(f), vmap(grad(f))"),
            ("a fit, a root, an ODE", "plaingrad.optimize, plaingrad.integrate"),
        ),
    ),
    (
        "Which mode?",
        (
            ("many inputs, few outputs", "reverse: grad, vjp"),
            ("few inputs, many outputs; long runs", "forward: jvp; it keeps no tape"),
            ("both about the same", 'jacobian(f): mode="auto" chooses'),
            ("reverse takes too much memory", "checkpoint, checkpoint_sequence"),
        ),
    ),
    (
        "Which tier?",
        (
            ("Python of any kind, other packages", "the plain tier, which is the default"),
            ("whole arrays: NumPy does the work", "the plain tier"),
            ("long loops over numbers or elements", 'tier="native" (needs Numba)'),
            ("not sure", 'tier="fastest": the first call decides'),
            ("refused natively", "why_not_native(f, *args) says why"),
        ),
    ),
)
STYLE = """
text { font: 15px system-ui, sans-serif; fill: #24292f; }
.head { font-size: 19px; font-weight: 600; }
.call { font: 14px ui-monospace, monospace; }
.box { fill: #eef2f7; stroke: #9aa7b4; }
.way { stroke: #9aa7b4; fill: none; }
"""


def drawn() -> str:
    """The picture as SVG."""
    parts, y = [], TOP
    for head, rows in TREES:
        y += 12
        parts.append(f'<text class="head" x="{LEFT}" y="{y + 8}">{escape(head)}</text>')
        y += 28
        for need, answer in rows:
            middle = y + LINE // 2 - 3
            parts.append(f'<rect class="box" x="{LEFT}" y="{y}" width="310" height="{LINE - 6}" rx="4"/>')
            parts.append(f'<text x="{LEFT + 10}" y="{middle + 5}">{escape(need)}</text>')
            parts.append(f'<path class="way" d="M{LEFT + 310} {middle} H{RIGHT - 52} l-7 -4 m7 4 l-7 4"/>')
            parts.append(f'<text class="call" x="{RIGHT - 44}" y="{middle + 5}">{escape(answer)}</text>')
            y += LINE
        y += 12
    size = f'width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}"'
    title = "<title>Which function, mode and tier</title>"
    ground = f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>'
    body = "\n".join(parts)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    return f"{head}\n{title}\n<style>{STYLE}</style>\n{ground}\n{body}\n</svg>\n"


if __name__ == "__main__":
    FILE.write_text(drawn(), encoding="utf-8")
