"""Text split into words, and words joined into text: tokenizers by name, case, the corpus of
words."""
