"""Decoding: search for the best translation, from raw text to raw text."""
