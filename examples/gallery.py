"""All examples with pictures, one after the other; the pictures go to `examples/output`, or to a folder that is named.

An example that needs a package which is not installed says so and is left out.

python examples/gallery.py
python examples/gallery.py docs/pictures     # those of the documentation
"""

import importlib
import sys
import warnings
from pathlib import Path

NAMES = (
    "epidemic nile_kalman mauna_loa aquifer portfolio deblurring"
    " challenger transplants longley digits satellite"
).split()

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "output"
    for name in NAMES:
        try:
            with warnings.catch_warnings():  # packages mention others that they miss
                warnings.simplefilter("ignore")
                importlib.import_module(name).main(folder / f"{name}.png")
        except ModuleNotFoundError as error:
            print(f"{name} needs {error.name}, which is not installed")
        print()
