"""Contrastive sets: does a model prefer the right translation to a wrong one?"""
