"""From the name of a corpus to its files: addresses, downloads, archives, formats, and how they are
put together."""
