"""The README and the page on architecture: the recipe is its file's text, the walk through a
sentence true."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from shipped import ROOT
from small import MONKEY, MONKEY_WORD_OF
from test_architecture import ORDER

from synmt import __version__
from synmt.model.variants.pascal import gaussian
from synmt.parsing.parser import StanzaParser
from synmt.syntax.signals import parent_middle

pytestmark = pytest.mark.journey

README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_file_that_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    names = re.findall(r"`((?:synmt|tests|benchmarks|recipes|docs)/[\w/.-]+)`", text)
    if page.name == "architecture.md":
        # also files and folders of the package
        names += re.findall(r"`([a-z_]+/[\w/]*(?:\.\w+)?)`", text)
        assert len(names) > 50
    for name in names:
        assert "NAME" in name or (ROOT / name).exists() or (ROOT / "synmt" / name).exists(), name


# an index of all words for the search takes a third of the time, and the pages cannot break it
WITHOUT_SEARCH = """
import sys
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.cmd.build import main
StandaloneHTMLBuilder.search = False
sys.exit(main(sys.argv[1:]))
"""


def build_site(place, source):
    options = ["-q", "-W", "--keep-going", "-n", "-D", "smartquotes=0", "-c", ROOT / "docs"]
    command = [sys.executable, "-c", WITHOUT_SEARCH, *options, source, place]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_site_has_every_page_and_no_broken_link(tmp_path):
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    done = build_site(tmp_path / "site", ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(
        (tmp_path / "site" / page.relative_to(ROOT).with_suffix(".html")).exists() for page in PAGES
    )


def test_the_citation_names_this_version():
    assert (
        yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"]
        == __version__
    )


def test_the_packages_are_those_whose_order_is_tested():
    table = ARCHITECTURE[ARCHITECTURE.index("| package |") :]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", table, flags=re.MULTILINE)
    assert [tuple(re.findall(r"\w+", row)) for row in rows] == list(ORDER)


def test_the_recipe_on_the_page_is_the_text_of_its_file():
    (block,) = re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL)
    assert block == (ROOT / "recipes" / "nc11-pascal.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "path"), re.findall(r"\[`([\w.]+)`\]\((synmt/[\w/]+\.py)\)", README)
)
def test_every_function_of_the_walk_is_in_its_file(name, path):
    body = ast.parse(Path(ROOT, path).read_text(encoding="utf-8")).body
    for part in name.split("."):
        found = [node for node in body if getattr(node, "name", None) == part]
        assert found, f"{path} has no {name}"
        body = getattr(found[0], "body", [])


def _result(step):
    """Return the last cell of a row of the walk."""
    (row,) = re.findall(rf"^\| {step} \|.*\| (.*?) \|$", README, flags=re.MULTILINE)
    return row


def test_the_parser_gives_the_tree_of_the_walk():
    (parse,) = StanzaParser("en").parse(["The monkey eats a banana"])
    assert (parse.words, parse.relations) == (MONKEY.words, MONKEY.relations)
    np.testing.assert_array_equal(parse.parents, MONKEY.parents)
    assert _result("parse") == "The ← monkey ← **eats** → banana → a"


def test_the_numbers_of_the_walk_are_computed_so():
    with_eos = np.append(MONKEY_WORD_OF, -1)
    assert _result("word of each piece") == " ".join(map(str, MONKEY_WORD_OF)) + ", and −1 for EOS"
    middles = parent_middle(MONKEY, with_eos)
    assert _result("signal").startswith(" ".join(f"{middle:g}" for middle in middles))
    row = gaussian(torch.from_numpy(middles)[None], variance=1.0)[0, 0]
    assert _result("terms").endswith(" ".join(f"{value:.3f}"[1:] for value in row))
