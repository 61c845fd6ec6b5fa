"""Dependency trees: as CoNLL-U, as arrays, and as the tensors over subword pieces that attention
reads (NumPy only)."""
