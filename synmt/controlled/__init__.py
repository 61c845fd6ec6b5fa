"""The controlled corpus: generated English-German sentences that need syntax, with gold trees."""
