"""Build the wheel and the source distribution into dist/, and look at both as a user would meet them.

    python .ci/wheels.py [FOLDER]

With the interpreter that runs this, which needs `build` and, for this script's own looks, nothing else. The wheel must
have this interpreter's and platform's tag, one extension, no debug information, and a compiled core once installed. The
source distribution is then installed where no C compiler works: that must succeed, with the Python form of the core.
"""

import os
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
TRIAL = """
import plaingrad
print(plaingrad.info()["core"])
assert plaingrad.grad(lambda x: x * x * x)(2.0) == 12.0
assert plaingrad.jvp(lambda x: x * x * x, (2.0,), (1.0,)) == (8.0, 12.0)
"""


def run(*command: str | Path, **environment: str) -> str:
    """Its output; what it says where it fails is the error."""
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, cwd=ROOT, env={**os.environ, **environment}
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def built(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution, the wheel built from the source distribution."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, PLAINGRAD_REQUIRE_COMPILED="1")
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with tarfile.open(source) as content:
        compiled = [name for name in content.getnames() if name.endswith((".so", ".pyd", ".c"))]
    assert not compiled, compiled
    return wheel, source


def extension_of(wheel: Path) -> bytes | None:
    """The extension in a wheel; there is one of this interpreter's, and no other."""
    with zipfile.ZipFile(wheel) as content:
        names = [name for name in content.namelist() if name.endswith((".so", ".pyd"))]
        expected = f"plaingrad/engine/compiled/_core{sysconfig.get_config_var('EXT_SUFFIX')}"
        assert names == ([] if FREE_THREADED else [expected]), names
        return content.read(names[0]) if names else None


def check_wheel(wheel: Path) -> None:
    """Its tag and what is in it."""
    _, _, python, abi, platform = wheel.stem.split("-")
    extension = extension_of(wheel)
    if extension is None:
        assert (python, abi, platform) == ("py3", "none", "any"), wheel.name
        return
    version = "cp{}{}".format(*sys.version_info)
    machine = sysconfig.get_platform().replace("-", "_").replace(".", "_").rpartition("_")[2]
    assert (python, abi) == (version, version) and machine in platform, wheel.name
    assert b".debug_info" not in extension, "the extension has debug information"
    print(f"{wheel.name}: {wheel.stat().st_size >> 10} KiB, of which unpacked {len(extension) >> 10} of C")


def tried(package: Path, folder: Path, *arguments: str, **environment: str) -> str:
    """The form of the core of a package that was installed into a new virtual environment."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(python, "-m", "pip", "install", "-q", *arguments, package, **environment)
    return run(python, "-I", "-c", TRIAL).strip()


def main() -> int:
    """Build and look."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, source = built(folder / "dist")
        check_wheel(wheel)
        found = tried(wheel, folder / "with")
        assert FREE_THREADED or found == "compiled", found
        print(f"the wheel, installed: {found}")
        nothing = {"CC": "/bin/false", "CXX": "/bin/false", "PLAINGRAD_REQUIRE_COMPILED": ""}
        found = tried(source, folder / "without", "--no-cache-dir", **nothing)
        assert os.name == "nt" or found.startswith("python: "), found
        print(f"the source distribution without a compiler, installed: {found}")
        target.mkdir(exist_ok=True)
        for package in (wheel, source):
            print((target / package.name).write_bytes(package.read_bytes()) and target / package.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
