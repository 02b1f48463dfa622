"""How the pictures of the gallery look, and how they are saved."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from PIL import Image

matplotlib.use("Agg")
import matplotlib.pyplot as plt

BROWN, TEAL, GREY, PURPLE, GOLD, GREEN = "#a4622c", "#1b6e78", "#5f5f5f", "#7a4f9a", "#d9a441", "#6fb1a0"
#: What the picture of the demo has, too.
PLAIN_STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
}
STYLE = PLAIN_STYLE | {"axes.axisbelow": True, "grid.color": "#e4e4e4", "legend.frameon": False}


@contextmanager
def picture(
    path: Path, *, width: float = 11.0, height: float = 4.2, dpi: float = 120, colours: int = 192, **grid: Any
) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes, to be drawn in; then they are saved as a small PNG of so many colours."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(width, height), layout="constrained", **grid)
        yield figure, axes
        path.parent.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        figure.savefig(buffer, dpi=dpi)
        plt.close(figure)
    Image.open(buffer).convert("RGB").quantize(colours).save(path, optimize=True)
