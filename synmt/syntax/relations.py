"""Names of dependency relations, and their 16 groups in labelled dependency distributions.

Liu & Sima'an (2022, table A) group the Stanford relations. UNIVERSAL_GROUPS translates each of
their groups to Universal Dependencies, in the same order, so that head 6 reads subjects with either
scheme:

    group               STANFORD_GROUPS              UNIVERSAL_GROUPS
     1  root            root                         root
     2  auxiliaries     aux auxpass cop              aux cop; auxpass is aux:pass
     3  complements     acomp ccomp pcomp xcomp      ccomp xcomp; acomp is xcomp, pcomp advcl or acl
     4  objects         dobj iobj pobj               obj iobj; pobj is obl or nmod, see 12 and 15
     5  clausal subj.   csubj csubjpass              csubj; csubjpass is csubj:pass
     6  subjects        nsubj nsubjpass              nsubj; nsubjpass is nsubj:pass
     7  coordinators    cc                           cc
     8  conjuncts       conj preconj                 conj cc:preconj
     9  adv. clauses    advcl                        advcl
    10  adjectives      amod                         amod
    11  adverbs         advmod                       advmod
    12  adv. nouns      npadvmod tmod                obl, every nominal modifier of a predicate
    13  determiners     det predet                   det; predet is det:predet
    14  numbers         num number quantmod          nummod; number is compound or flat, quantmod
                                                     is advmod
    15  nominals        appos                        appos nmod
    16  punctuation     punct                        punct

Groups 12 and 15 are wider than the paper's: Universal Dependencies attaches the noun of a
prepositional phrase, Stanford the preposition. Its arcs `prep` and `pobj` are one arc here: `obl`
of a predicate or `nmod` of a noun.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from synmt.arrays import IntArray, Strings, int_array
from synmt.errors import UsageError

Groups = tuple[Strings, ...]


def _names(text: str) -> Strings:
    return tuple(text.split())


def _groups(text: str) -> Groups:
    return tuple(_names(group) for group in text.split("|"))


UNIVERSAL = _names(
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse "
    "dislocated expl fixed "
    "flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root "
    "vocative xcomp"
)
"""The 37 relations of Universal Dependencies, version 2, without subtypes."""

STANFORD = _names(
    "abbrev acomp advcl advmod agent amod appos attr aux auxpass cc ccomp complm conj cop csubj "
    "csubjpass dep det "
    "discourse dobj expl goeswith infmod iobj mark mwe neg nn npadvmod nsubj nsubjpass num number "
    "parataxis partmod "
    "pcomp pobj poss possessive preconj predet prep prepc prt punct purpcl quantmod rcmod ref rel "
    "root tmod vmod xcomp "
    "xsubj"
)
"""The Stanford typed dependencies, with older names and those of collapsed trees."""

KNOWN = tuple(dict.fromkeys(UNIVERSAL + STANFORD))
"""Both schemes in a fixed order: the index of a name is its row in an embedding of relations."""

UNIVERSAL_GROUPS = _groups(
    "root | aux cop | ccomp xcomp | obj iobj | csubj | nsubj | cc | conj cc:preconj | advcl | amod "
    "| advmod | obl | "
    "det | nummod | appos nmod | punct"
)

LEFT_OUT = _names(
    "acl case clf compound dep discourse dislocated expl fixed flat goeswith list mark orphan "
    "parataxis reparandum "
    "vocative"
)
"""Universal relations in no group; the paper leaves out most of their counterparts (prep, nn, mark,
rcmod, ...)."""

STANFORD_GROUPS = _groups(
    "root | aux auxpass cop | acomp ccomp pcomp xcomp | dobj iobj pobj | csubj csubjpass | nsubj "
    "nsubjpass | cc | "
    "conj preconj | advcl | amod | advmod | npadvmod tmod | det predet | num number quantmod | "
    "appos | punct"
)

STANFORD_LEFT_OUT = _names(
    "abbrev agent attr complm dep discourse expl goeswith infmod mark mwe neg nn parataxis partmod "
    "poss possessive "
    "prep prepc prt purpcl rcmod ref rel vmod xsubj"
)
"""Stanford relations that are in no group of the paper."""


def group_of(relation: str, groups: Groups) -> int:
    """Find the group of a relation, from 0; -1 if it is in none.

    A group with `nsubj` also has its subtypes (`nsubj:pass`), except for those that a group lists;
    a group with `rest` has all relations that are in no other group.
    """
    numbers = group_numbers(groups)
    return numbers.get(relation, numbers.get(base_name(relation), numbers.get(REST, -1)))


REST = "rest"
"""In a group, this name means all relations that are in no group."""


# all sentences of a shard have the same names; the arcs of a tree have different names in each
# sentence
@lru_cache(maxsize=1024)
def groups_of(relations: Strings, groups: Groups) -> IntArray:
    """Find the group of every relation: R names -> (R,), read-only since it is cached."""
    numbers = int_array(group_of(relation, groups) for relation in relations)  # (R,)
    numbers.flags.writeable = False
    return numbers


@lru_cache(maxsize=64)
def group_numbers(groups: Groups) -> dict[str, int]:
    """Map each name to the number of its group, from 0; raise UsageError for a name in two
    groups."""
    numbers: dict[str, int] = {}
    for number, names in enumerate(groups):
        for name in names:
            if numbers.setdefault(name, number) != number:
                raise UsageError(
                    f"relation '{name}' is in groups {numbers[name] + 1} and {number + 1}",
                    do="Put every relation in one group",
                )
    return numbers


def unknown_relations(relations: Iterable[str], known: Iterable[str]) -> list[str]:
    """List the distinct relations that are unknown, with and without their subtype."""
    names = set(known)
    return [name for name in dict.fromkeys(relations) if not {name, base_name(name)} & names]


def base_name(relation: str) -> str:
    """Remove the subtype: `nsubj:pass` -> `nsubj`."""
    return relation.partition(":")[0]
