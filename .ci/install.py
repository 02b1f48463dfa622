"""Install into the environment of this interpreter, by uv where it can be had: `python .ci/install.py -e . pytest`.

uv asks the registry for everything at once and keeps what it got for the next environment, so that the five
environments of CI take a minute and not ten. It does not read pip's configuration: what that says is handed over.
Whatever uv cannot do is pip's. So is the compiled core: uv gives every CPython the editable wheel that it has built for
the first, and so a core to that one only.
"""

import os
import subprocess
import sys

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


def main(arguments: list[str]) -> int:
    """Install what pip would install when called with these arguments."""
    pip = [sys.executable, "-m", "pip", "install", "-q"]
    best = ["--index-strategy", "unsafe-best-match"]  # as pip does: the newest of all places
    uv = [sys.executable, "-m", "uv", "pip", "install", "-q", "--python", sys.executable, *best]
    has_uv = subprocess.run([*pip, "uv>=0.5"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    without_core = {**os.environ, **of_pip(), "PLAINGRAD_COMPILED": "0"}
    if has_uv and subprocess.run([*uv, *arguments], env=without_core, check=False).returncode == 0:
        core = subprocess.run([*pip, "--no-deps", "-e", "."], check=False) if "-e" in arguments else None
        return core.returncode if core else 0
    print("uv could not install this; pip does", file=sys.stderr)
    return subprocess.run([*pip, *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
