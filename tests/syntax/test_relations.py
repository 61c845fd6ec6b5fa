"""The names of relations, and their groups."""

import pytest
from refusing import assert_refused

from synmt.syntax.relations import (
    KNOWN,
    LEFT_OUT,
    STANFORD,
    STANFORD_GROUPS,
    STANFORD_LEFT_OUT,
    UNIVERSAL,
    UNIVERSAL_GROUPS,
    group_of,
    groups_of,
    unknown_relations,
)

SCHEMES = [(UNIVERSAL, UNIVERSAL_GROUPS, LEFT_OUT), (STANFORD, STANFORD_GROUPS, STANFORD_LEFT_OUT)]


@pytest.mark.parametrize(("scheme", "groups", "left_out"), SCHEMES)
def test_every_relation_is_in_one_group_or_left_out(scheme, groups, left_out):
    placed = [name for group in groups for name in group] + list(left_out)
    # of the groups' subtypes, cc:preconj alone, none is in the list of relations
    assert sorted(name for name in placed if ":" not in name) == sorted(scheme)
    assert len(set(placed)) == len(placed)


def test_there_are_37_universal_relations_and_16_groups_of_either_scheme():
    assert len(set(UNIVERSAL)) == len(UNIVERSAL) == 37
    assert len(UNIVERSAL_GROUPS) == len(STANFORD_GROUPS) == 16


def test_the_groups_of_the_paper():
    # Liu & Sima'an (2022), table A
    assert "; ".join(" ".join(group) for group in STANFORD_GROUPS) == (
        "root; aux auxpass cop; acomp ccomp pcomp xcomp; dobj iobj pobj; csubj csubjpass; nsubj "
        "nsubjpass; "
        "cc; conj preconj; advcl; amod; advmod; npadvmod tmod; det predet; num number quantmod; "
        "appos; punct"
    )


SAME = """
root cop xcomp iobj cc conj advcl amod advmod appos punct mark auxpass=aux:pass dobj=obj
csubjpass=csubj:pass nsubjpass=nsubj:pass preconj=cc:preconj tmod=obl:tmod npadvmod=obl:npmod
predet=det:predet num=nummod nn=compound prep=case rcmod=acl:relcl
"""


@pytest.mark.parametrize("names", SAME.split())
def test_the_two_tables_agree_where_the_schemes_do(names):
    stanford, _, universal = names.partition("=")
    universal = universal or stanford
    assert group_of(universal, UNIVERSAL_GROUPS) == group_of(stanford, STANFORD_GROUPS)


def test_a_subtype_goes_with_its_relation_unless_it_is_named():
    groups = (("a",), ("a:y", "b"))
    names = ("a", "a:x", "a:y", "a:y:z", "b", "A", "ab", "", ":x")
    numbers = [0, 0, 1, 0, 1, -1, -1, -1, -1]
    assert [group_of(name, groups) for name in names] == numbers
    assert groups_of(names, groups).tolist() == numbers


def test_groups_that_are_kept_cannot_be_changed_by_accident():
    with pytest.raises(ValueError, match="read-only"):
        groups_of(("obj",), UNIVERSAL_GROUPS)[0] = 7


def test_a_relation_in_two_groups_is_refused():
    assert_refused(
        "relation 'obj' is in groups 1 and 3",
        group_of,
        "nsubj",
        (("obj", "iobj"), ("nsubj",), ("obj",)),
    )


def test_unknown_relations_are_named_once_each():
    seen = {"obj": 9, "nsubj:pass": 2, "SB": 4, "OC:x": 1}
    assert unknown_relations(seen, UNIVERSAL) == ["SB", "OC:x"]
    assert unknown_relations(["SB", "obj", "MO", "SB"], UNIVERSAL) == ["SB", "MO"]
    assert unknown_relations(["cc", "cc:preconj"], ["cc:preconj"]) == ["cc"]


def test_known_relations_are_both_schemes_in_a_fixed_order():
    assert set(KNOWN) == set(UNIVERSAL) | set(STANFORD)
    assert KNOWN[:37] == UNIVERSAL
    assert len(set(KNOWN)) == len(KNOWN)


def test_every_relation_of_a_gold_treebank_is_universal(treebank):
    seen = {relation for parse in treebank for relation in parse.relations}
    assert len(seen) > 30
    assert unknown_relations(seen, UNIVERSAL) == []
    # the 16 groups are all in use
    assert {group_of(relation, UNIVERSAL_GROUPS) for relation in seen} == set(range(-1, 16))


def test_rest_takes_what_no_group_names():
    groups = (("nsubj",), ("rest",), ("obl", "nsubj:pass"))
    names = ("nsubj:x", "odd", "case", "obl", "nsubj:pass")
    assert [group_of(name, groups) for name in names] == [0, 1, 1, 2, 2]
    assert group_of("odd", groups[:1]) == -1
