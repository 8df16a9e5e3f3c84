"""Sentence embeddings and semantic search with a real model."""
