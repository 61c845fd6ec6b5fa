"""Parts that several variants share: biaffine scores, probabilities of trees, vectors of pairs and
paths, factors."""
