"""Raw lines to dependency trees: all that knows Stanza."""
