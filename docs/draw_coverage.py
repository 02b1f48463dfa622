"""Writes docs/reference/coverage.md: what becomes of every public function of NumPy and SciPy, and what was measured.

What is said of a function comes from `plaingrad coverage`; what is measured, from the tables in tests/scipy/sweep,
which call it. `python docs/draw_coverage.py` measures for some minutes. A test says whether the page still holds.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "coverage.md"
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from plaingrad.cli import survey  # noqa: E402

# One process each, so that one that does not come back costs its own part only; several for the long ones.
PARTS = {"stats": 8, "special": 2, "integrate": 2, "optimize": 2, "variants_numbers": 2}
NAMES = "fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats".split()
NAMES += ["variants_arrays", "variants_numbers"]
WORKERS = 2
LONGEST = 12  # seconds of the processor that one case may take
RIGHT, PARTLY, REFUSED, OPEN, CONSTANT, UNCHECKED = (
    "right",
    "partly",
    "refused",
    "open",
    "constant",
    "unchecked",
)
SAID = {
    ("rule", RIGHT): "rule, checked",
    ("followed", RIGHT): "followed, checked",
    ("depends", RIGHT): "followed, checked; may reach compiled code in other uses",
    ("rule", CONSTANT): "constant result, checked",
    ("followed", CONSTANT): "constant result, checked",
    ("depends", CONSTANT): "constant result, checked",
    ("no tangent", CONSTANT): "constant result, checked",
    ("no tangent", RIGHT): "constant result, checked",
}


def measured(names: list[str]) -> dict[str, dict[str, list[str]]]:
    """By case, the verdicts of its forms and modes, and the words that go with those that are not right."""
    jobs = [(name, k, PARTS.get(name, 1)) for name in names for k in range(PARTS.get(name, 1))]
    found: dict[str, dict[str, list[str]]] = {}
    with ThreadPoolExecutor(WORKERS) as pool:
        for lines in pool.map(part, jobs):
            for line in lines:
                found.update(json.loads(line))
    return found


def part(job: tuple[str, int, int]) -> list[str]:
    """What a process prints that measures one part."""
    command = [sys.executable, __file__, "--part", *map(str, job)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.splitlines()


class TooLong(BaseException):
    """A case has had its time."""


def stop(*_: object) -> None:
    """Called when it has."""
    raise TooLong


def measure(name: str, k: int, n: int) -> None:
    """Print a line of JSON for every n-th case of one table."""
    from tests.scipy.sweep import harness, tables

    signal.signal(signal.SIGPROF, stop)
    cases = [case for table in tables.all_of([name]) for case in table.cases]
    for case in cases[k::n]:
        signal.setitimer(signal.ITIMER_PROF, LONGEST)
        try:
            if case.late:
                raise TooLong
            result = harness.run(case)
        except TooLong:
            print(json.dumps({case.id: {"verdicts": ["late"], "words": [], "constant": False}}), flush=True)
            continue
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        words = [f"{' '.join(filter(None, key))}: {text}" for key, text in result.words.items()]
        verdicts = sorted(set(result.verdicts.values()))
        print(
            json.dumps({case.id: {"verdicts": verdicts, "words": words, "constant": case.constant}}),
            flush=True,
        )


def by_function(cases: dict[str, dict[str, list[str]]], names: set[str]) -> dict[str, tuple[str, list[str]]]:
    """By public name: what all its cases say together, and the labels of those that are refused."""
    verdicts: dict[str, list[tuple[str, list[str]]]] = defaultdict(list)
    varies: dict[str, bool] = {}
    for case, result in cases.items():
        name = case.partition("[")[0]
        while name not in names and "." in name:
            name = name.rpartition(".")[0]
        label = case.removeprefix(name).lstrip(".").replace("[", " ").strip(" ]")
        verdicts[name].append((label, result["verdicts"]))
        varies[name] = varies.get(name, False) or not result["constant"]
    sums = {name: together(found) for name, found in verdicts.items()}
    return {
        name: (CONSTANT, []) if found[0] == RIGHT and not varies[name] else found
        for name, found in sums.items()
    }


def together(found: list[tuple[str, list[str]]]) -> tuple[str, list[str]]:
    """One word for several cases."""
    refused = [label for label, verdicts in found if "refused" in verdicts]
    bad = [label for label, verdicts in found if {"wrong", "crashed", "nan"} & set(verdicts)]
    right = [label for label, verdicts in found if "right" in verdicts]
    if bad:
        return OPEN, bad
    if refused:
        return (PARTLY if right else REFUSED), refused
    return (RIGHT if right else UNCHECKED), []


def page(cases: dict[str, dict[str, list[str]]]) -> str:
    """The page."""
    entries = [
        entry
        for library in ("numpy", "scipy")
        for entry in survey.survey(survey.found(library)[0])
        if entry.kind != "method"
    ]
    sums = by_function(cases, {entry.name for entry in entries})
    modules: dict[str, list[survey.Entry]] = defaultdict(list)
    for entry in entries:
        modules[entry.module].append(entry)
    lines = [*head(cases, entries, sums), *figures(modules, sums)]
    for module, found in modules.items():
        if module != "scipy":
            lines += section(module, found, sums)
    return "\n".join(lines) + "\n"


TOP = """\
# What is covered

<!-- written by docs/draw_coverage.py -->

Every public function and class of NumPy {numpy} and SciPy {scipy}, and what becomes of it in a derivative. What
is said of each comes from `plaingrad coverage` ({{doc}}`command-line`), which you can ask about the versions
that you have and about any other module. What is *checked* was called, too: {cases} cases in
`tests/scipy/sweep` compare gradients, tangents and gradients of gradients with differences, for keywords,
methods, axes, single precision, complex numbers, arrays with steps and negative steps. Methods count with their
class or distribution.

Of {called} functions and classes of SciPy that have a derivative and were called, **{right} are right in every
case ({share:.1f} %)**, {partly} are right in some uses and refuse others by name (together {together:.1f} %),
{refused} refuse. {wrong} {unclear} cases hold a point where differences say nothing, a kink or nan.
{late}

| word | meaning |
|---|---|
| rule | its derivative is known |
| followed | Python code, differentiated as it runs, down to functions with rules |
| no tangent | its result is constant between jumps: indices, counts, truth values |
| depends | Python code that may reach compiled code without a rule; whether it does depends on the arguments |
| refused | where its derivative is needed, an error says so, with your line |
"""


def head(cases: dict, entries: list, sums: dict) -> list[str]:
    """What the page is, and its figures in a sentence."""
    verdicts = [sums[entry.name][0] for entry in entries if entry.name in sums]
    count = {verdict: verdicts.count(verdict) for verdict in (RIGHT, PARTLY, REFUSED, OPEN)}
    called = sum(count.values())
    wrong = f"{count[OPEN]} are wrong, named below." if count[OPEN] else "None is silently wrong."
    unclear = sum("unclear" in result["verdicts"] for result in cases.values())
    late = ", ".join(f"`{name}`" for name, result in cases.items() if "late" in result["verdicts"])
    late = f"Not measured, for they take more than {LONGEST} seconds: {late}." if late else ""
    text = TOP.format(
        late=late,
        numpy=version("numpy"), scipy=version("scipy"), cases=len(cases), called=called, right=count[RIGHT],
        share=100 * count[RIGHT] / max(1, called), partly=count[PARTLY], refused=count[REFUSED], wrong=wrong,
        together=100 * (count[RIGHT] + count[PARTLY]) / max(1, called), unclear=unclear,
    )  # fmt: skip
    return text.splitlines() + [""]


def figures(modules: dict, sums: dict) -> list[str]:
    """A line for each module."""
    lines = [
        "| module | rule | followed | no tangent | depends | refused | checked: right | in part | refused |"
    ]
    lines.append("|---|" + "---:|" * 8)
    for module, entries in modules.items():
        status = [entry.status for entry in entries]
        verdicts = [sums.get(entry.name, (UNCHECKED, []))[0] for entry in entries]
        said = [status.count(word) for word in ("rule", "followed", "no tangent", "depends", "refused")]
        seen = [verdicts.count(word) for word in (RIGHT, PARTLY, REFUSED)]
        if module.startswith("scipy") and module != "scipy":
            lines.append(f"| {module} | {' | '.join(map(str, said))} | {' | '.join(map(str, seen))} |")
        elif module != "scipy":
            lines.append(f"| {module} | {' | '.join(map(str, said))} | | | |")
    return [*lines, ""]


def section(module: str, entries: list, sums: dict) -> list[str]:
    """The names of one module, those of one kind together."""
    rows: dict[str, list[str]] = defaultdict(list)
    for entry in entries:
        verdict, labels = sums.get(entry.name, (UNCHECKED, []))
        name = f"`{entry.name.removeprefix(module + '.')}`"
        if verdict == PARTLY:
            uses = ", ".join(f"`{label}`" if label else "in one mode" for label in labels[:6])
            rows["checked: right, but refused in"].append(
                f"{name} ({uses}{', ...' if len(labels) > 6 else ''})"
            )
        elif verdict == REFUSED:
            rows["refused"].append(name)
        elif verdict == OPEN:
            rows["**wrong in**"].append(f"{name} ({', '.join(labels)})")
        elif entry.status == "refused" and verdict == UNCHECKED:
            rows["refused"].append(name)
        else:
            rows[SAID.get((entry.status, verdict), entry.status)].append(name)
    order = [
        *dict.fromkeys(SAID.values()),
        "rule",
        "followed",
        "no tangent",
        "depends",
        "checked: right, but refused in",
        "refused",
    ]
    lines = [f"## {module}", "", "| what | names |", "|---|---|"]
    for said in sorted(rows, key=lambda said: order.index(said) if said in order else -1):
        lines.append(f"| {said} | {', '.join(rows[said])} |")
    return [*lines, ""]


if __name__ == "__main__":
    if "--part" in sys.argv:
        measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        PAGE.write_text(page(measured(NAMES)), encoding="utf-8")
