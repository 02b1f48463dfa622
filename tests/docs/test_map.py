"""The map is current: the picture, a line for every room, and the files that a program passes through."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import plaingrad
from plaingrad.engine.calls import reuse
from plaingrad.engine.compiled import core

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(plaingrad.__file__).parent
PAGE = (ROOT / "docs" / "explanation" / "map.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def drawing():
    spec = importlib.util.spec_from_file_location("draw_map", ROOT / "docs" / "draw_map.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_picture_is_drawn_from_the_imports_as_they_are(drawing):
    picture = drawing.PICTURE.read_text(encoding="utf-8")
    assert picture == drawing.picture(), "make map draws it anew"


@pytest.mark.parametrize(("package", "heading"), [("plaingrad.engine", "engine/`"), ("plaingrad.native", "native/`")])
def test_every_room_has_its_line_from_the_top_floor_down(drawing, package, heading):
    section = PAGE[PAGE.index(f"tier**: `{heading}") :].split("\n**")[0]
    lines = re.findall(r"^\| `(\w+)/` \|", section, re.MULTILINE)
    assert lines == [room for floor in drawing.FLOORS[package] for room in floor]


def test_what_stands_beside_the_tiers_has_its_line(drawing):
    first_cells = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    named = {name.rstrip("/").removesuffix(".py") for cell in first_cells for name in re.findall(r"`([^`]+)`", cell)}
    rooms = {room for floor in drawing.FLOORS["plaingrad"] for room in floor}
    assert rooms - {"native", "engine"} <= named


@pytest.mark.parametrize("tier", ["plain", "native"])
def test_the_program_passes_through_every_file_of_its_table(tier):
    if tier == "native":
        pytest.importorskip("numba")
        importlib.import_module("plaingrad.native.border.call")  # to import a file is not to pass through it
    section = PAGE[PAGE.index(f"**{tier} tier** ({{doc}}") :]
    table = section[section.index("| step | file |") :].split("\n\n")[0]
    files = set(re.findall(r"`([\w/]+\.py)`", table))
    assert len(files) > 10
    assert files - files_passed(tier) == set()


def files_passed(tier):
    """The files of the package in which a function was called while the program on the page was differentiated."""
    program = PAGE[PAGE.index("```python\n") + 10 :].split("```")[0].split("x = np")[0]
    space = {}
    exec(compile(program, "map.md", "exec"), space)  # a function that no cache has met
    names = set()

    def look(frame, event, arg):
        if event == "call":
            names.add(frame.f_code.co_filename)

    reuse.free_levels.clear()  # one that is used again passes through fewer files
    before = sys.getprofile()
    sys.setprofile(look)
    try:
        plaingrad.grad(space["f"], tier=tier)(np.linspace(0.1, 1.0, 30))
    finally:
        sys.setprofile(before)
    if any(name.startswith("<plaingrad hot hooks") for name in names):
        names.add(str(PACKAGE / "engine" / "fusion" / "hot_hooks.py"))  # which generates them, once a process
    if core is None:
        names.add(str(PACKAGE / "rewrite" / "expressions.py"))  # whose pieces only compiled levels evaluate
    return {Path(name).relative_to(PACKAGE).as_posix() for name in names if PACKAGE in Path(name).parents}
