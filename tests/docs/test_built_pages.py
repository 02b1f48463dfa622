"""The pages as a reader sees them. `make docs`, which .ci/run calls, builds them and looks for the same faults.

So they are built here only with PLAINGRAD_TEST_ALL=1.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sampling import ALL

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def checker():
    spec = importlib.util.spec_from_file_location("check_pages", ROOT / "docs" / "check_pages.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.mark.skipif(not ALL, reason="`make docs` builds and checks the pages; so do tests with PLAINGRAD_TEST_ALL=1")
def test_the_built_pages_have_no_fault(checker, tmp_path):
    for package in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(package, reason=f"{package} is not installed: `make docs` builds and checks the pages")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", str(ROOT / "docs"), str(tmp_path)]
    subprocess.run(command, check=True)
    assert checker.faults(tmp_path) == []


def test_a_backslash_before_a_star_is_seen(checker):
    page = '<pre><span class="n">x</span> <span class="o">\\*</span> y</pre>'
    assert checker.faults_of_any(page) == ["shows 'x \\\\* y'"]
    assert checker.faults_of_any(page.replace("\\", "")) == []


def test_a_sentence_taken_for_a_type_is_seen(checker):
    found = checker.faults_of_api('<dt class="field-even">Return type<span class="colon">:</span></dt>')
    assert "has a field Return type" in found


def test_exceptions_without_an_entry_or_a_link_are_seen(checker):
    found = checker.faults_of_api("<dd><p><strong>AliasError</strong> - an array has two names.</p></dd>")
    assert "has no entry for plaingrad.AliasError" in found
    assert "has no entry for plaingrad.errors.TruncationWarning" in found
    assert "has no link at AliasError" in found


def test_a_backtick_outside_of_code_is_seen(checker):
    assert "shows a backtick: 'see `grad'" in checker.faults_of_api("<p>see `grad</p><code>`</code>")


def test_a_file_as_topic_is_seen(checker):
    page = "<h2><code>rules/elementwise.py</code></h2><h3>Linear algebra</h3><p>plaingrad.rules.special.digamma</p>"
    assert checker.faults_of_rules(page) == [
        "has a file as topic: rules/elementwise.py",
        "lists plaingrad.rules.special.digamma",
    ]


def test_a_link_that_leads_nowhere_is_seen(checker, tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#there">b</a> <a href="#top">up</a> <a href="https://x.org/y">x</a>')
    (tmp_path / "b.html").write_text('<p id="there"></p>')
    files = {path.name: path for path in tmp_path.glob("*.html")}
    assert checker.faults_of_links(tmp_path, files) == ["a.html: has a link that leads nowhere: #top"]
    (tmp_path / "b.html").write_text("")
    assert "a.html: has a link that leads nowhere: b.html#there" in checker.faults_of_links(tmp_path, files)


def test_searches_give_pages_as_the_site_does(checker):
    pytest.importorskip("snowballstemmer")
    names = ["decisions/0001", "how-to/fit", "how-to/speed"]
    index = {
        "docnames": names,
        "titles": ["Fitting, a decision", "Fit a model", "Speed"],
        "terms": {"fit": [1, 2], "ode": 2, "model": [0, 1]},
        "titleterms": {"fit": [0, 1], "model": 1},
    }
    assert checker.results_of(index, "fitting") == ["how-to/fit", "how-to/speed", "decisions/0001"]
    assert checker.results_of(index, "fit ODE") == ["how-to/fit", "how-to/speed"]  # for there is "ode" in "model"
    assert checker.results_of(index, "fit pandas") == []
    assert "nan" in dict(checker.sought()) and ("how-to/find-a-nan",) in dict(checker.sought()).values()


def test_pages_are_not_too_long(checker, tmp_path):
    assert checker.too_long(ROOT / "docs") == []
    (tmp_path / "long.md").write_text("word " * 1501 + "\n```python\n" + "code " * 9 + "\n```\n| a table | of words |\n")
    assert checker.too_long(tmp_path) == ["long.md: has 1501 words; 1500 are enough for a page"]
