"""How good translations are: metrics, intervals, significance, contrastive sets."""
