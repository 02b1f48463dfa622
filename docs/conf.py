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

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "reference/rule-table.md", "decisions/template.md"]
html_theme = "furo"
html_title = "plaingrad"
autodoc_typehints = "none"
autodoc_member_order = "bysource"


def write_rule_table(app):
    """Print the rulebook to the file that reference/rules.md includes."""
    from rule_table import rule_table

    (HERE / "reference" / "rule-table.md").write_text(rule_table(), encoding="utf-8")


def keep_stars(app, what, name, thing, options, lines):
    """Docstrings are plain text: a star in one is a star, as in `*args`, and begins no emphasis."""
    code = re.compile("(`[^`]*`)")
    for k, line in enumerate(lines):
        parts = code.split(line)
        lines[k] = "".join(part if part[:1] == "`" else part.replace("*", "\\*") for part in parts)


def setup(app):
    """Write generated pages before anything is read."""
    app.connect("autodoc-process-docstring", keep_stars, priority=400)  # before napoleon
    app.connect("builder-inited", write_rule_table)
