"""The picture that helps to choose is current, and every name in it is one of plaingrad's."""

import importlib.util
import re
from pathlib import Path

import plaingrad

ROOT = Path(__file__).resolve().parents[2]


def test_the_picture_is_the_one_that_is_drawn_and_names_what_there_is():
    spec = importlib.util.spec_from_file_location("draw_choice", ROOT / "docs" / "draw_choice.py")
    drawing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)
    assert drawing.FILE.read_text(encoding="utf-8") == drawing.drawn(), "make map draws it anew"
    _, functions = drawing.TREES[0]
    for name in re.findall(r"\b[a-z_]+(?=[,;(]|$)", ", ".join(answer for _, answer in functions)):
        assert hasattr(plaingrad, name) or name in ("f", "product", "integrate", "optimize"), name
