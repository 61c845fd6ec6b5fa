"""What makes synmt fast: modules that replace those of a model, a decoder for searches, a parser
without documents."""
