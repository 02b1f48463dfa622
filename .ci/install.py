"""Install into the environment of this interpreter, by uv where it can be had: `python .ci/install.py -e . pytest`.

uv asks the registry for everything at once and keeps what it got for the next environment, so that the five
environments of CI take a minute and not ten. It does not read pip's configuration: what that says is handed over.
Whatever uv cannot do is pip's. So is the compiled core: uv gives every CPython the editable wheel that it has built for
the first, and so a core to that one only.
"""

import importlib.metadata
import os
import subprocess
import sys
import tomllib
from pathlib import Path

# Options of pip, and the variable by which uv is told the same.
SAID_TO_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "constraint": "UV_CONSTRAINT",
    "cert": "SSL_CERT_FILE",
}


def of_pip() -> dict[str, str]:
    """What pip is configured to do, as uv's variables; places that are not there are left out."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    said = {}
    for line in listed.splitlines():
        option, _, value = line.partition("=")
        name = SAID_TO_UV.get(option.rpartition(".")[2].lstrip("."))
        value = " ".join(place for place in value.strip("'").split() if is_there(place))
        if name and value and name not in os.environ:
            said[name] = value
    return said


def is_there(place: str) -> bool:
    """Whether a place is on the network, or on this machine."""
    path = place.removeprefix("file://")
    return not path.startswith("/") or os.path.exists(path)


def tools_of_the_build() -> list[str]:
    """What building plaingrad needs, but for NumPy."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    return [tool for tool in project["build-system"]["requires"] if not tool.startswith("numpy")]


def has_new_numpy() -> bool:
    """Whether the core can be built with the NumPy that is installed: with an older one it would run with that only."""
    return int(importlib.metadata.version("numpy").partition(".")[0]) >= 2


def main(arguments: list[str]) -> int:
    """Install what pip would install when called with these arguments."""
    pip = [sys.executable, "-m", "pip", "install", "-q"]
    best = ["--index-strategy", "unsafe-best-match"]  # as pip does: the newest of all places
    uv = [sys.executable, "-m", "uv", "pip", "install", "-q", "--python", sys.executable, *best]
    has_uv = subprocess.run([*pip, "uv>=0.5"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    without_core = {**os.environ, **of_pip(), "PLAINGRAD_COMPILED": "0"}
    if has_uv and subprocess.run([*uv, *arguments], env=without_core, check=False).returncode == 0:
        if "-e" not in arguments or os.environ.get("PLAINGRAD_COMPILED") == "0":
            return 0  # a core that lies beside its sources is taken
        # An environment of its own for the build, as pip makes one, takes longer than all else here.
        tools = [*tools_of_the_build(), "editables"]
        has_tools = (
            has_new_numpy() and subprocess.run([*uv, *tools], env=without_core, check=False).returncode == 0
        )
        alone = ["--no-build-isolation"] if has_tools else []
        return subprocess.run([*pip, "--no-deps", *alone, "-e", "."], check=False).returncode
    print("uv could not install this; pip does", file=sys.stderr)
    return subprocess.run([*pip, *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
