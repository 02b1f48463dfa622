"""Every example in README.md and docs/ runs.

- A ```python block is executed; blocks of one page share a namespace; `>>>` lines are compared as in doctest.
- A ```python block that begins with `# NAME.py` is also a file of that name, for the commands of the page.
- In a ```console block every `$ plaingrad ...` runs, and what it prints is compared with the lines under it.
"""

import contextlib
import doctest
import io
import re
import shlex
import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest

from plaingrad import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "_build" not in page.parts and page.name != "rule-table.md"]
FENCE = re.compile(
    r"^(?P<fence>```+)(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)[ ]*$", re.MULTILINE | re.DOTALL
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
CHECKER = doctest.OutputChecker()


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the page that it starts on."""

    language: str
    text: str
    line: int


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        yield Block(match["info"].strip(), match["body"], text.count("\n", 0, match.start("body")) + 1)


def run_python(block, page, namespace):
    if ">>>" in block.text:
        test = doctest.DocTestParser().get_doctest(
            block.text, namespace, page.name, str(page), block.line - 1
        )
        report = io.StringIO()
        runner = doctest.DocTestRunner(checker=CHECKER, optionflags=FLAGS, verbose=False)
        failed = runner.run(test, out=report.write, clear_globs=False).failed
        namespace.update(test.globs)
        assert not failed, report.getvalue()
        return
    source = "\n" * (block.line - 1) + block.text  # tracebacks show the line of the page
    try:
        exec(compile(source, str(page), "exec"), namespace)
    except Exception:
        pytest.fail(f"{page}:{block.line}\n{traceback.format_exc()}", pytrace=False)


def run_console(block, page):
    lines = block.text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
    assert starts[:1] == [0], f"{page}:{block.line}: a console block begins with a command"
    for start, stop in zip(starts, [*starts[1:], len(lines)]):
        program, *argv = shlex.split(lines[start][2:])
        assert program == "plaingrad", (
            f"{page}:{block.line}: only plaingrad runs in console blocks; use ```text"
        )
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                cli.main(argv)
            except SystemExit:  # argparse: --help, --version, a wrong option
                pass
        wanted = "\n".join([*lines[start + 1 : stop], ""])
        assert CHECKER.check_output(wanted, out.getvalue(), FLAGS), f"{lines[start]}\n{out.getvalue()}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_example_on_the_page_runs(page, tmp_path, monkeypatch):
    for package in ("numba", "torch"):
        if f"import {package}\n" in page.read_text(encoding="utf-8"):
            pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in blocks_of(page):
        if block.language == "python":
            name = re.match(r"# (\w+\.py)\n", block.text)
            if name:
                (tmp_path / name[1]).write_text(block.text, encoding="utf-8")
            run_python(block, page, namespace)
        elif block.language == "console":
            run_console(block, page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_block_escapes_execution_by_its_label(page):
    allowed = {
        "python",
        "console",
        "text",
        "mermaid",
        "toml",
        "{toctree}",
        "{eval-rst}",
        "{include} rule-table.md",
    }
    labels = {block.language for block in blocks_of(page)}
    assert {label for label in labels if label not in allowed} == set()
