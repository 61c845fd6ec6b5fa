"""*The monkey eats a banana.*, with its full stop."""

import numpy as np
from small import MONKEY

from synmt.syntax.parse import Parse


def with_full_stop(*, relation: str = "punct", tag: str = "PUNCT") -> Parse:
    """Add the full stop to the tree, as a child of eats."""
    spans, parents = np.vstack([MONKEY.spans, [[24, 25]]]), np.append(MONKEY.parents, 2)
    tags = ["DET", "NOUN", "VERB", "DET", "NOUN", tag]
    return Parse([*MONKEY.words, "."], spans, parents, [*MONKEY.relations, relation], tags)
