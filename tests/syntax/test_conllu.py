"""CoNLL-U: files of synmt and of other tools are read, errors are located."""

import gzip
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from cases import cases
from notation import arcs_in
from refusing import assert_fails
from small import MONKEY, all_trees, is_tree

from synmt.syntax.conllu import format_conllu, read_conllu, read_parses
from synmt.syntax.merging import token_tree
from synmt.syntax.parse import flat_parse

LINE = "The monkey eats a banana"
TAGGED = replace(MONKEY, tags=["DET", "NOUN", "VERB", "DET", "NOUN"])


def write(folder, text):
    path = folder / "trees.conllu"
    path.write_bytes(text.encode())
    return path


def read(folder, text):
    return list(read_conllu(write(folder, text)))


def row(number, form, head, relation="dep", misc="_", tag="X"):
    return f"{number}\t{form}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t{misc}\n"


def rows_of(words):
    """Write rows of words such as `1 The 2 det; 2 monkey 0`."""
    return "".join(row(*word.split()) for word in words.split("; "))


def test_a_tree_is_written_in_ten_columns_with_its_places():
    first, text, the, _, eats, *_, last, end = format_conllu(TAGGED, LINE, 7).split("\n")
    assert [first, text, last, end] == ["# line = 7", f"# text = {LINE}", "", ""]
    assert the == "1\tThe\t_\tDET\t_\t_\t2\tdet\t_\tTokenRange=0:3"
    assert eats.split("\t")[6:8] == ["0", "root"]


def test_words_that_touch_have_no_space_after():
    parse = flat_parse("a b")
    touching = replace(parse, spans=np.array([[0, 1], [1, 2]]))
    assert "\tSpaceAfter=No|TokenRange=0:1\n" in format_conllu(touching, "ab", 1)
    assert "SpaceAfter" not in format_conllu(parse, "a b", 1)


@pytest.mark.parametrize(
    "line",
    [
        LINE,
        "",
        " ",
        "\u3000\u00a0",
        "  two  spaces ",
        "tab\tand\rreturn",
        "U+2028\u2028and\u2029next\x85line",
        "bell\x07 \x0b \x1c end",
        "שלום עולם",
        "a 👩‍👩‍👧 b",
        "zero\u200bwidth \ufeffmark",
        "# text = no comment",
        "1\tx\t_",
        '"quoted" \\ back',
        "_ _",
    ],
)
def test_any_line_comes_back_exactly(tmp_path, line):
    parse = flat_parse(line)
    block = format_conllu(parse, line, 1)
    assert len(block.splitlines()) == len(block.split("\n")) - 1, (
        "no character ends a line but the line end"
    )
    path = write(tmp_path, block + format_conllu(TAGGED, LINE, 2))
    assert list(read_conllu(path)) == [(line, parse), (LINE, TAGGED)]
    assert list(read_parses(path, [line, LINE])) == [parse, TAGGED]


def test_a_multiword_token_has_the_parent_of_the_word_that_leads_it(tmp_path):
    # Wir gehen zum Haus: zu -> Haus (case), dem -> Haus (det); both parents are outside, the first
    # leads
    words = "1 Wir 2 nsubj; 2 gehen 0 root; 3-4 zum _ _; 3 zu 5 case; 4 dem 5 det; 5 Haus 2 obl"
    [(_, parse)] = read(tmp_path, f"# text = Wir gehen zum Haus\n{rows_of(words)}\n")
    assert parse.words == ["Wir", "gehen", "zum", "Haus"]
    assert parse.parents.tolist() == [1, 1, 3, 1]
    assert parse.relations == ["nsubj", "root", "case", "obl"]


def test_every_tree_of_five_words_stays_a_tree_when_two_words_are_joined():
    trees = all_trees(5).tolist()
    # of all 5 ** 5 ways of giving parents, 5 ** 4 are trees with one root (Cayley, with the choice
    # of the root)
    assert len(trees) == 625
    for parents, first in product(trees, range(4)):
        tokens = [range(word, word + 1 + (word == first)) for word in range(5) if word != first + 1]
        joined = token_tree(parents, ["_"] * 5, tokens)[1]
        assert is_tree(joined)


def test_comments_and_empty_nodes_are_skipped_and_a_missing_text_is_joined_from_the_words(tmp_path):
    rows = "# sent_id = 1\n" + row(1, "Do", 0, "root", "SpaceAfter=No") + row(2, "n't", 1, "advmod")
    rows += "2.1\tgo\t_\t_\t_\t_\t_\t_\t1:ccomp\t_\n" + row(3, "!", 1, "punct")
    [(text, parse)] = read(tmp_path, "# global.columns = ID\n\n\n" + rows)
    assert text == "Don't !"
    assert parse.words == ["Do", "n't", "!"]
    assert parse.spans.tolist() == [[0, 2], [2, 5], [6, 7]]


def test_windows_line_ends_are_read(tmp_path):
    assert read(tmp_path, format_conllu(TAGGED, LINE, 1).replace("\n", "\r\n")) == [(LINE, TAGGED)]


def test_words_are_placed_in_the_line_whatever_its_whitespace(tmp_path):
    path = write(tmp_path, format_conllu(TAGGED, LINE, 1))
    [parse] = read_parses(path, ["  The\u2028monkey eats\ta  banana"])
    assert parse.spans.tolist() == [[2, 5], [6, 12], [13, 17], [18, 19], [21, 27]]


def test_a_shifted_token_range_is_ignored(tmp_path):
    rows = row(1, "a", 0, "root", "TokenRange=1:2") + row(2, "a", 1, "dep", "TokenRange=2:3")
    [parse] = read_parses(write(tmp_path, rows + "\n"), ["a a"])
    assert parse.spans.tolist() == [[0, 1], [2, 3]]


def test_a_file_without_blocks_for_empty_lines_is_read(tmp_path):
    path = write(tmp_path, format_conllu(TAGGED, LINE, 1))
    assert [len(parse) for parse in read_parses(path, ["", LINE, " "])] == [0, 5, 0]


MALFORMED = """
1 The 3; 2 end 0 => the heads are not a tree with one root: 3 0.*1 to 2
1 The 1; 2 end 0 => the heads are not a tree with one root: 1 0
1 The x => the heads are not a tree with one root: x
1 The _ => the heads are not a tree with one root: _
1 The 9999999999 => the heads are not a tree with one root: 9+
1 The 0; 2 end 0 => the heads are not a tree with one root
1 The 2; 2 end 1 => the heads are not a tree with one root
1 a 0; 2 b 3; 3 c 2 => the heads are not a tree
1 The 0; 3 end 1 => is not the row of word 2
x The 0 => 'x.*' is not the row of word 1
9999999999 The 0 => '9+.*' is not the row of word 1
1-3 The _; 1 T 0; 2 he 1 => a range ends at word 3 of 2
1-1 The _; 1 T 0 => '1-1.*' is not the row of word 1
"""
FAULTY = {
    "1\tThe\t_\n": r"is not the row of word 1.*separated by tabs",
    row(1, "", 0): r"is not the row of word 1",
    "# raw = [1]\n" + row(1, "a", 0): r"# raw: broken: .*Parse the text again",
    f"# raw = {'[' * 100_000}\n" + row(1, "a", 0): r"# raw: broken: the content",
}
FAULTY |= {rows_of(words): fault for words, fault in cases(MALFORMED)}


@pytest.mark.parametrize("rows", FAULTY, ids=range(len(FAULTY)))
def test_a_malformed_tree_is_named_by_file_sentence_and_line(tmp_path, rows):
    assert_fails(
        r"trees\.conllu, sentence 1 \(line 1\).*" + FAULTY[rows], read, tmp_path, rows + "\n"
    )


ARCS = arcs_in(
    "0>1 det 0.98, 0>2 det 0.0195, 1>2 nsubj:pass 0.9999, 2>2 root 1, 3>4 det 0.9991, "
    "4>2 obj 0.75, 4>4 root 0.2499"
)


def test_arcs_are_written_to_misc_and_read_again(tmp_path):
    parse = replace(TAGGED, arcs=ARCS)
    block = format_conllu(parse, LINE, 1)
    miscs = [line.split("\t")[9] for line in block.split("\n")[2:7]]
    assert miscs[0] == "Arcs=2:det:0.98,3:det:0.0195|TokenRange=0:3"
    assert miscs[4] == "Arcs=3:obj:0.75,0:root:0.2499|TokenRange=18:24"
    path = write(tmp_path, block + format_conllu(TAGGED, LINE, 2))
    assert list(read_conllu(path)) == [(LINE, parse), (LINE, TAGGED)]
    assert list(read_parses(path, [LINE, LINE])) == [parse, TAGGED]


def test_arcs_are_found_anywhere_in_misc(tmp_path):
    rows = row(1, "a", 0, "root", "SpaceAfter=No|Arcs=0:root:0.999,2:x:y:5e-05|MyArcs=b")
    rows += row(2, "b", 1, "x", "Arcs=1:x:1")
    [(text, parse)] = read(tmp_path, rows)
    assert (text, parse.arcs) == ("ab", arcs_in("0>0 root 0.999, 0>1 x:y 5e-5, 1>0 x 1"))
    [(_, parse)] = read(tmp_path, row(1, "a", 0, "root", "SpaceAfter=No|MyArcs=1"))
    assert parse.arcs is None


def test_the_arcs_of_a_multiword_token_are_those_of_the_word_that_leads_it(tmp_path):
    # zu (0.3 inside "zum", so 0.63 of 0.7 and 0.07 of 0.7 are left) leads; the parent "dem" becomes
    # "zum"
    rows = row("1-2", "zum", "_", "_") + row(
        1, "zu", 3, "case", "Arcs=3:case:0.63,2:case:0.3,0:root:0.07"
    )
    rows += row(2, "dem", 3, "det", "Arcs=3:det:1") + row(
        3, "Haus", 0, "root", "Arcs=0:root:0.9,2:obl:0.06,1:obl:0.04"
    )
    [(_, parse)] = read(tmp_path, "# text = zum Haus\n" + rows)
    assert parse.arcs == arcs_in("0>1 case 0.9, 0>0 root 0.1, 1>1 root 0.9, 1>0 obl 0.1")
    block = format_conllu(parse, "zum Haus", 1)
    assert read(tmp_path, block) == [("zum Haus", parse)]


WRONG_ARCS = """
Arcs=
Arcs=1:nsubj:0.9,
Arcs=1:0.9
Arcs=1::0.9
Arcs=1:nsubj:x
Arcs=1:nsubj:0.9_9
Arcs=1:nsubj: 0.99
Arcs=1:nsubj:nan
Arcs=1:nsubj:-0.1
Arcs=-1:nsubj:0.9
Arcs=x:nsubj:0.9
Arcs=9999999999:nsubj:0.9
Arcs=1:a=b:0.5
Arcs=1:a b:0.5
Arcs=1:nsubj:0.6;1:obj:0.4
Arcs=1:nsubj:0.5
Arcs=1:nsubj:1|Arcs=1:obj:1
Arcs=1:nsubj:0
Arcs=1:nsubj:1.0001
Arcs=1:nsubj:0.9,0:root:0.2
Arcs=4:nsubj:0.9
Arcs=2:nsubj:0.9
Arcs=1:nsubj:0.5,1:nsubj:0.4
"""


@pytest.mark.parametrize("misc", WRONG_ARCS.strip().splitlines())
def test_corrupt_arcs_are_named_by_file_sentence_and_token(tmp_path, misc):
    good = row(1, "a", 0, "root", "Arcs=0:root:1")
    bad = row(2, "b", 1, "x", f"SpaceAfter=No|{misc}|TokenRange=2:3")
    path = write(tmp_path, f"{good}\n{good}{bad}" + row(3, "c", 1, "x", "Arcs=1:x:1"))
    where = r"trees\.conllu, sentence 2 \(line 3\): the arcs of token 2 in MISC are wrong: "
    for reading in (read_conllu(path), read_parses(path, ["a", "a b c"])):
        assert_fails(f"{where}.*Arcs=2:nsubj.*synmt parse --arcs", list, reading)


def test_a_token_without_arcs_among_tokens_with_arcs_is_named(tmp_path):
    rows = row(1, "a", 0, "root", "Arcs=0:root:1") + row(2, "b", 1, "x", "SpaceAfter=No")
    assert_fails(r"sentence 1 \(line 1\): the arcs of token 2 .* or none", read, tmp_path, rows)


ANOTHER_TEXT = """
The monkey eats an apple => word 5 is 'banana', but the text continues with 'n apple'
The monkey => word 3 is 'eats', but the text continues with ''
The monkey eats a banana! => word 6 is '', but the text continues with '!'
The m\u043enkey eats => word 2 is 'monkey', but the text continues with 'm\u043enkey eats'
 => has more trees than the text, which has 1 lines
"""


@pytest.mark.parametrize(("line", "message"), cases(ANOTHER_TEXT))
def test_a_tree_of_another_text_is_refused_with_sentence_and_token(tmp_path, line, message):
    path = write(tmp_path, format_conllu(TAGGED, LINE, 1))
    assert_fails(re.escape(message), list, read_parses(path, [line]))


@pytest.mark.parametrize(("blocks", "lines"), [(1, 3), (3, 1), (0, 2), (2, 0)])
def test_different_numbers_of_sentences_and_lines_are_refused(tmp_path, blocks, lines):
    path = write(tmp_path, format_conllu(TAGGED, LINE, 1) * blocks)
    message = f"ends before line {blocks + 1} " if blocks < lines else f"which has {lines} lines"
    assert_fails(message, list, read_parses(path, [LINE] * lines))


@pytest.mark.parametrize("name", ["de_gsd-ud-dev", "en_ewt-ud-dev"])
def test_a_gold_treebank_is_read_and_comes_back(tmp_path, data_folder, name):
    source = data_folder / "ud" / f"{name}.conllu.gz"
    gold = list(read_conllu(source))
    assert len(gold) in (799, 2001)
    for text, parse in gold:
        assert is_tree(parse.parents)
        assert [text[start:end] for start, end in parse.spans] == parse.words
    path = tmp_path / "again.conllu.gz"
    blocks = (format_conllu(parse, text, number) for number, (text, parse) in enumerate(gold, 1))
    path.write_bytes(gzip.compress("".join(blocks).encode()))
    assert list(read_conllu(path)) == gold
    assert list(read_parses(source, [text for text, _ in gold])) == [parse for _, parse in gold]
