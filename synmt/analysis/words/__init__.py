"""How often is a word translated correctly? Precision, recall, F1 of groups of words; n-grams of
two systems."""
