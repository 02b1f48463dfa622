"""`plaingrad coverage`: which public functions of a library are differentiated, how, and why others are not."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from typing import Any

from plaingrad.cli.reach import DEPENDS, REFUSES, STATUSES, Verdict
from plaingrad.tables import aligned

MEANING = {
    "rule": "its derivative is known",
    "followed": "Python code, differentiated down to functions with rules",
    "no tangent": "its result is constant: indices, counts, truth values",
    "depends": "Python code that may reach compiled code without a rule",
    "refused": "an error says so where its derivative is needed",
}
LIBRARIES = ("numpy", "scipy")
SHOWN = 8  # obstacles that are listed of one function


def add_to(commands: Any) -> None:
    """Add the command to the grammar."""
    text = "list the public functions of a library: those with rules, those followed, those refused, and why"
    sub = commands.add_parser("coverage", help=text, description=text)
    sub.set_defaults(command=coverage_command)
    sub.add_argument(
        "target",
        nargs="?",
        metavar="MODULE",
        help="a module, or a function in one; otherwise numpy and scipy",
    )
    for status in (REFUSES, DEPENDS):
        sub.add_argument(
            f"--{status}",
            action="append_const",
            dest="only",
            const=status,
            help=f"list only what is `{status}`; exit status 1 if there is any",
        )
    sub.add_argument(
        "--all", action="store_true", help="list every name, also of a package with many modules"
    )
    sub.add_argument("--json", action="store_true", help="print it as JSON")


def coverage_command(options: argparse.Namespace) -> int:
    """`plaingrad coverage`: counts for each module, and a line for each name."""
    from plaingrad.cli.survey import found, quietly, survey

    targets = [options.target] if options.target else installed()
    entries: list[Any] = []
    sys.path.insert(0, os.getcwd())  # as under `python -m`
    try:
        for target in targets:
            module, value, name = found(target)
            if name:
                return one(target, quietly(value, owner_of(module, name)), options.json)
            entries += survey(module)
    finally:
        sys.path.remove(os.getcwd())
    chosen = [entry for entry in entries if not options.only or entry.status in options.only]
    if options.json:
        facts = {"modules": table_of_counts(entries), "entries": [entry.as_json() for entry in chosen]}
        print(json.dumps(facts, indent=1))
    else:
        print_counts(entries)
        if options.only or options.all or len({entry.module for entry in entries}) == 1:
            print_entries(chosen)
    return 1 if options.only and chosen else 0


def installed() -> list[str]:
    """NumPy, and SciPy where it is installed."""
    return [name for name in LIBRARIES if importlib.util.find_spec(name) is not None]


def owner_of(module: Any, name: str) -> type | None:
    """The class, if `name` is that of a method of one, or of an object of one."""
    value = module
    for part in name.split(".")[:-1]:
        value = getattr(value, part)
    if value is module:
        return None
    return value if isinstance(value, type) else type(value)


def one(name: str, verdict: Verdict, as_json: bool) -> int:
    """All that is known of one function; 1 if it is refused, or may be."""
    if as_json:
        obstacles = [{"name": o.name, "why": o.why, "way": list(o.way)} for o in verdict.obstacles]
        facts = {"name": name, "status": verdict.status, "why": verdict.why, "obstacles": obstacles}
        print(json.dumps(facts, indent=1))
    else:
        reason = verdict.why if verdict.why and not verdict.obstacles else MEANING[verdict.status]
        print(f"{name}: {verdict.status} ({reason})")
        for obstacle in verdict.obstacles[:SHOWN]:
            way = "".join(f" > {step}" for step in obstacle.way)
            print(f"  {name}{way} > {obstacle.name}: {obstacle.why}")
        if len(verdict.obstacles) > SHOWN:
            print(f"  and {len(verdict.obstacles) - SHOWN} more")
    return 1 if verdict.status in (REFUSES, DEPENDS) else 0


def table_of_counts(entries: list[Any]) -> dict[str, dict[str, dict[str, int]]]:
    """By module, of functions and of methods: how many have each status."""
    table: dict[str, dict[str, dict[str, int]]] = {}
    for entry in entries:
        kinds = table.setdefault(
            entry.module, {"functions": dict.fromkeys(STATUSES, 0), "methods": dict.fromkeys(STATUSES, 0)}
        )
        kinds["methods" if entry.kind == "method" else "functions"][entry.status] += 1
    return table


def print_counts(entries: list[Any]) -> None:
    """A line for each module; methods, if there are any, in a second number."""
    rows = [("module", *STATUSES)]
    for module, kinds in table_of_counts(entries).items():
        pairs = [(kinds["functions"][status], kinds["methods"][status]) for status in STATUSES]
        rows.append((module, *[f"{f} + {m}" if m else str(f) for f, m in pairs]))
    print(aligned(rows, range(1, len(rows[0]))))
    if any(entry.kind == "method" for entry in entries):
        print("The second number counts methods.")


def print_entries(entries: list[Any]) -> None:
    """A line for each name."""
    if entries:
        print()
        print(aligned([(entry.name, entry.status, entry.verdict.why) for entry in entries]))
