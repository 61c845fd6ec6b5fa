"""Decoding: the search for the best translation, and the way from raw text to raw text.

From text to text:

    translator      the way as a whole: `Translator`
    options         what is wanted: `SearchOptions`, `Sampling`, `Wanted`
    requests        what is asked of one line; windows and batches of lines
    jsonl           lines as JSON objects, in and out
    readers         the models of a run or an ensemble, and the parsers of their trees
    source          a line becomes pieces, with its tree
    translation     what comes out for a line
    degenerate      translations that are none
    override        a line under another tree than its own

The search:

    beam            beam search: `search`
    continuations   what may follow a hypothesis; groups of a diverse beam
    hypotheses      what goes on and what has ended, scores and the length penalty
    constraints     what is forbidden, forced, and how long it may become
    sampling        pieces at random instead
    ensemble        several models step by step

Given translations:

    forced          the probabilities of given pieces, and what the model looks at
    pairs           the same for pairs of raw text
    written         the same for translations that were just found
    alignment       words to words, from weights of attention
"""
