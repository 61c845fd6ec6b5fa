"""How often is a word translated right? Precision, recall and F1 for groups of words, and n-grams of two systems."""
