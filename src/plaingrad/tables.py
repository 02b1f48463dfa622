"""Rows of text as a table with aligned columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> str:
    """A line for each row; the columns in `right` end at one place, the others begin at one."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            text.rjust(width) if k in right else text.ljust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def as_html(rows: Sequence[Sequence[str]], before: str = "") -> str:
    """The rows as a table of HTML, the first one being its head; `before` is put in front of them as it is."""
    import html  # for notebooks only

    head, *body = [[html.escape(cell) for cell in row] for row in rows]
    align = ' style="text-align:left"'
    lines = [f"<tr>{''.join(f'<td{align}>{cell}</td>' for cell in row)}</tr>" for row in body]
    return f"<table>{before}<tr>{''.join(f'<th{align}>{cell}</th>' for cell in head)}</tr>{''.join(lines)}</table>"
