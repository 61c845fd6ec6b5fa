"""Stanza's models, called on lines of like length without Stanza's documents: what a tree does not
need is left out."""
