"""The networks. A variant of attention is one file in `variants/`; no other file here names a paper."""
