"""Tasks that a new user brings, each done from the documentation alone: the scripts in tests/docs/tasks/."""

import re
import runpy
import warnings
from pathlib import Path

import pytest
from tests.sampling import ALL

ROOT = Path(__file__).resolve().parents[2]
TASKS = sorted((Path(__file__).parent / "tasks").glob("*.py"))
NEEDS = {"fit_a_curve": "scipy", "sparse_pde": "scipy", "ode_fit": "scipy", "loop_to_native": "numba", "with_pandas": "pandas"}


LIKE_PAGES = {"fit_a_curve", "hmc", "loop_to_native", "with_pandas"}  # whose pages run much the same


@pytest.mark.parametrize("task", [t for t in TASKS if ALL or t.stem not in LIKE_PAGES], ids=lambda task: task.stem)
def test_the_task_is_done(task):
    pytest.importorskip(NEEDS.get(task.stem, "numpy"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        runpy.run_path(str(task))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.stem)
def test_its_page_is_found_by_the_word_that_one_types(task):
    """A search for the word gives the page: it stands in its title or text."""
    said = re.match(r'""".* Search: (.+)\. Page: (\S+\.md)\."""', task.read_text(encoding="utf-8").splitlines()[0])
    page = (ROOT / said[2]).read_text(encoding="utf-8")
    assert all(word.lower() in page.lower() for word in said[1].split())
