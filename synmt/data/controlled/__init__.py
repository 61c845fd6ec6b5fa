"""The controlled corpus: English-German sentences that need syntax, with gold trees."""
