"""Fronts of other protocols: the documents of their answers. Imports nothing but the vocabulary."""
