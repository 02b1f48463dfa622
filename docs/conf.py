"""How the documentation is built: Sphinx with MyST; the rule table is printed from the rulebook."""

import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "plaingrad"
author = "The plaingrad authors"
project_copyright = "2026, The plaingrad authors"
version = release = version_of("plaingrad")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "reference/rule-table.md", "decisions/template.md"]
html_theme = "furo"
html_static_path = ["static"]
html_search_scorer = str(HERE / "search_scores.js")
html_css_files = ["pages.css"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "  # what is copied has neither prompts nor output
copybutton_prompt_is_regexp = True
html_title = f"plaingrad {version}"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = False
napoleon_attr_annotations = False
default_role = "code"  # `x` in a docstring


def write_rule_table(app):
    """Print the rulebook to the file that reference/rules.md includes."""
    from rule_table import rule_table

    (HERE / "reference" / "rule-table.md").write_text(rule_table(), encoding="utf-8")


CODE = re.compile(r"(`[^`]*`)")
ANSWER = re.compile(r"(?:Returns|Yields):$")


def keep_stars(app, what, name, thing, options, lines):
    """Docstrings are plain text: outside of code and examples a star is a star and begins no emphasis."""
    paragraphs = "\n".join(lines).split("\n\n")
    for k, text in enumerate(paragraphs):
        if not text.lstrip().startswith((">>>", "Examples:\n")):
            parts = CODE.split(text)
            paragraphs[k] = "".join(part if part[:1] == "`" else part.replace("*", "\\*") for part in parts)
    lines[:] = "\n\n".join(paragraphs).split("\n")


def keep_colons(app, what, name, thing, options, lines):
    """What is returned is said in sentences, and napoleon takes what precedes their first colon for a type.

    A colon of our own in front leaves it an empty one.
    """
    if what == "data":
        lines[0] = f": {lines[0]}"
    for k, line in enumerate(lines[:-1]):
        if ANSWER.match(line):
            first = lines[k + 1]
            text = first.lstrip()
            lines[k + 1] = f"{first[: len(first) - len(text)]}: {text}"


def setup(app):
    """Write generated pages before anything is read."""
    app.connect("autodoc-process-docstring", keep_stars, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", keep_colons, priority=401)
    app.connect("builder-inited", write_rule_table)
