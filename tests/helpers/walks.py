"""Loops that walk through trees, for what signals compute at once."""

from synmt.syntax.relations import KNOWN


def way_up(parents, word):
    """Walk to the root: the word, its parent, and so on."""
    path = [int(word)]
    while parents[path[-1]] != path[-1]:
        path.append(int(parents[path[-1]]))
    return path


def in_mask(name, parents, i, j):
    """Return whether word j is in a mask of word i; -1 is not a word."""
    if name == "all" or min(i, j) < 0:
        return name == "all"
    (_, *up), (_, *down) = way_up(parents, i), way_up(parents, j)
    return {
        "self": i == j,
        "parent": up[:1] == [j],
        "children": down[:1] == [i],
        "siblings": i != j and up[:1] == down[:1] != [],
        "ancestors": j in up,
        "descendants": i in down,
    }[name]


def kind_of_kin(parents, i, j):
    """Number what word j is to word i, as in KINDS."""
    names = ("self", "parent", "children", "siblings", "ancestors", "descendants")
    for number, name in enumerate(names, start=1):
        if in_mask(name, parents, i, j):
            return number
    return 0


def signed_steps(parents, i, j):
    """depth_i - depth_j on one way to the root, else the sum of both, negative if i comes first."""
    up, down = way_up(parents, i), way_up(parents, j)
    if j in up or i in down:
        return len(up) - len(down)
    both = len(up) - 1 + len(down) - 1
    return both if i > j else -both


def number(relation):
    """Number a relation of KNOWN from 0, without its subtype if the whole name is not there; the
    next number is for others."""
    found = [KNOWN.index(name) for name in (relation, relation.split(":")[0]) if name in KNOWN]
    return [*found, len(KNOWN)][0]


def path(parse, key, query, longest=8):
    """Walk from the key up to what is above both words, and down to the query: the symbols."""
    up, down = 1, len(KNOWN) + 2
    itself, far, special = (down + len(KNOWN) + 1 + extra for extra in range(3))
    if min(key, query) < 0 or key == query:
        return [itself if key == query >= 0 else special]
    ways = way_up(parse.parents, key), way_up(parse.parents, query)
    rising = [word for word in ways[0] if word not in ways[1]]
    sinking = [word for word in reversed(ways[1]) if word not in ways[0]]
    symbols = [up + number(parse.relations[word]) for word in rising]
    symbols += [down + number(parse.relations[word]) for word in sinking]
    return symbols if len(symbols) <= longest else [far]


def number_of_path(symbols):
    """Write symbols as one number of eight bytes with a sign."""
    return int.from_bytes(bytes(symbols).ljust(8, b"\0"), "little", signed=True)


def arc(parse, i, j, *, labelled):
    """0 without an arc, from 1 the relation towards the parent, and after all of them that towards
    the child."""
    if min(i, j) < 0 or i == j:
        return 0
    relations = len(KNOWN) + 1 if labelled else 1
    if parse.parents[i] == j:
        return 1 + number(parse.relations[i]) * labelled
    if parse.parents[j] == i:
        return 1 + relations + number(parse.relations[j]) * labelled
    return 0
