"""Parallel text to batches: corpora, filters, vocabularies, the prepared corpus, annotations."""
