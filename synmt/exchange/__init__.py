"""Models of other programs: read those of Hugging Face, and write ours for them."""
