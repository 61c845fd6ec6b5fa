"""The networks. A variant of attention is one file in `variants/`."""
