"""The documentation as a site: `make docs`. Its pages are the Markdown files of the project, as
they are."""

from typing import Any

project = "synmt"
copyright = "the synmt authors"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/*.md",
    "docs/systems/*.md",
    "synmt/**/NOTICE.md",
]
exclude_patterns = ["**/.venv", "build"]
# links to sections, by the names that GitHub gives them
myst_heading_anchors = 4
html_theme = "alabaster"
html_theme_options = {"page_width": "1200px", "fixed_sidebar": True}
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}
html_show_sourcelink = False

_PAGES = {
    "README": "docs/guide docs/recipes docs/corpora docs/systems/README docs/* CONTRIBUTING "
    "CHANGELOG synmt/*/*/NOTICE",
    "docs/systems/README": "*",
}


def setup(app: Any) -> None:
    """List the pages at the side, which Markdown cannot do."""
    app.connect("source-read", _add_contents)


def _add_contents(app: Any, page: str, source: list[str]) -> None:
    if page in _PAGES:
        source[0] += "\n".join(
            ["\n```{toctree}", ":hidden:", ":glob:", *_PAGES[page].split(), "```\n"]
        )
