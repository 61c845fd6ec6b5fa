"""What parsers say of sentences, and what subword pieces make of it. numpy only, but for the Stanza adapter."""
