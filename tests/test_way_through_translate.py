"""How many files of synmt a line enters on its way from raw text to its translation, with a model that reads trees."""

import pytest
from entered import files_entered, way_through
from small_run import PASCAL, TEXT, make_run

from synmt.decode.translator import Translator

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "pascal", PASCAL)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNMT_CACHE", str(tmp_path))


def test_the_way_from_a_run_folder_to_a_printed_line_is_short(run, capsys):
    def journey():
        # eight pieces
        for translation in Translator.load(run.folder, max_length_ratio=1e-9, max_length_extra=8).translate([TEXT[0]]):
            print(translation.text)

    files, calls = way_through(journey)
    assert capsys.readouterr().out.count("\n") == 1
    # a third of them only read the recipe and the weights, identify the parser, and build the model
    assert len(files) <= 58, sorted(files)
    assert calls <= 510


def test_a_loaded_translator_resolves_nothing_again(run):
    translator = Translator.load(run)
    list(translator.translate([TEXT[1]]))
    files = files_entered(lambda: list(translator.translate([TEXT[0]])))
    assert "fast/parser/direct.py" in files
    assert len(files) <= 32, sorted(files)
