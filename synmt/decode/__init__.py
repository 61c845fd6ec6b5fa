"""Decoding: the search for the best translation, and the way from raw text to raw text."""
