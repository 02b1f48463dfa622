"""The picture of adjoints is current, and both of its halves have the same arrows, turned round."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_picture_is_the_one_that_is_drawn():
    spec = importlib.util.spec_from_file_location("draw_adjoints", ROOT / "docs" / "draw_adjoints.py")
    drawing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)
    picture = drawing.PICTURE.read_text(encoding="utf-8")
    assert picture == drawing.picture(), "make map draws it anew"
    arrow = r'<path( class="back")? d="M (\d+) (\d+) L (\d+) (\d+)"'
    arrows = [(kind, *map(int, places)) for kind, *places in re.findall(arrow, picture)]
    forwards = {(x1, y1, x2, y2) for kind, x1, y1, x2, y2 in arrows if not kind}
    back = {(x2 - drawing.HALF, y2, x1 - drawing.HALF, y1) for kind, x1, y1, x2, y2 in arrows if kind}
    assert len(forwards) == 14 and forwards == back
    assert "(adjoints.svg)" in (ROOT / "docs" / "how-to" / "threads.md").read_text(encoding="utf-8")
    assert "(adjoints.svg)" in (ROOT / "docs" / "how-to" / "distributed.md").read_text(encoding="utf-8")
