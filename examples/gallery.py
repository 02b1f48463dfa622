"""All examples with pictures, one after the other; the pictures go to `examples/output`, or to a folder that is named.

python examples/gallery.py
python examples/gallery.py docs/pictures     # those of the documentation
"""

import sys
from pathlib import Path

import aquifer
import deblurring
import epidemic
import mauna_loa
import nile_kalman
import portfolio

EXAMPLES = (epidemic, nile_kalman, mauna_loa, aquifer, portfolio, deblurring)

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "output"
    for example in EXAMPLES:
        example.main(folder / f"{example.__name__}.png")
        print()
