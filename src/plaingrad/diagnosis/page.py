"""A profile as HTML: the annotated source, in one page that needs no other file."""

from __future__ import annotations

import html
import linecache
from typing import Any

from plaingrad.diagnosis.places import Place
from plaingrad.diagnosis.words import seconds, size

STYLE = """
.plaingrad-profile { font: 14px/1.5 system-ui, sans-serif; color: #1b1f24; background: #fff; max-width: 100%; }
.plaingrad-profile h1 { font-size: 1.2em; } .plaingrad-profile h2 { font-size: 1em; margin: 1.5em 0 .3em; }
.plaingrad-profile .scroll { overflow-x: auto; }
.plaingrad-profile table { border-collapse: collapse; font: 12px/1.5 ui-monospace, monospace; width: 100%;
  table-layout: auto; } /* Jupyter's own columns are all as wide, and leave no room for the source */
.plaingrad-profile th { text-align: right; font-weight: 600; border-bottom: 1px solid #8c959f; padding: 0 .6em; }
.plaingrad-profile th:last-child { text-align: left; }
.plaingrad-profile td { text-align: right; padding: 0 .6em; white-space: pre; vertical-align: top; }
.plaingrad-profile td.source { text-align: left; width: 100%; }
.plaingrad-profile td.number { color: #57606a; }
@media (max-width: 46em) { /* on a telephone: line, times and source */
  .plaingrad-profile :is(th, td):is(:nth-child(2), :nth-child(5), :nth-child(6), :nth-child(7)) { display: none; }
  .plaingrad-profile :is(th, td) { padding: 0 .4em; }
}
"""
HEADS = ("line", "hits", "forward", "reverse", "tape", "held", "peak", "source")


def page(profile: Any, whole: bool = True) -> str:
    """The profile as a page; as a part of one, where not `whole`."""
    body = ['<div class="plaingrad-profile">', f"<h1>{html.escape(profile.head())}</h1>"]
    for file in dict.fromkeys(row.file for row in profile.rows):
        body.append(f"<h2>{html.escape(Place(file, 1, '').short)}</h2>")
        body.append(table(profile, file))
    body += [f"<p>{html.escape(text)}</p>" for text in profile.advice]
    body.append("</div>")
    inner = f"<style>{STYLE}</style>" + "\n".join(body)
    if not whole:
        return inner
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(profile.name)}: profile</title></head><body>{inner}</body></html>\n"
    )


def table(profile: Any, file: str) -> str:
    """The lines of a file around those that were run, with what each has cost."""
    costs: dict[int, Any] = {}
    for row in profile.rows:
        if row.file == file:
            costs[row.line] = row.cost
    most = max([cost.time + cost.back for cost in costs.values()], default=0.0)
    rows = ["<tr>" + "".join(f"<th>{head}</th>" for head in HEADS) + "</tr>"]
    last = 0
    for line in shown_lines(costs):
        if last and line > last + 1:
            rows.append('<tr><td class="number">...</td></tr>')
        last = line
        source = linecache.getline(file, line).rstrip("\n")
        cost = costs.get(line)
        cells = [""] * 6
        colour = ""
        if cost is not None:
            cells = [f"{cost.hits:,}", seconds(cost.time), seconds(cost.back), f"{cost.entries:,}"]
            cells += [size(cost.held), size(cost.peak)]
            share = (cost.time + cost.back) / most if most else 0.0
            colour = f' style="background: rgba(255, 140, 0, {0.6 * share:.2f})"'
        rows.append(
            f'<tr{colour}><td class="number">{line}</td>'
            + "".join(f"<td>{cell}</td>" for cell in cells)
            + f'<td class="source">{html.escape(source)}</td></tr>'
        )
    return '<div class="scroll"><table>' + "\n".join(rows) + "</table></div>"


def shown_lines(costs: dict[int, Any]) -> list[int]:
    """The lines that were run, and three around each."""
    found = {n for line in costs for n in range(max(line - 3, 1), line + 4)}
    return sorted(found)
