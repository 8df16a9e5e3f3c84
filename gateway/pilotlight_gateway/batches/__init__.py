"""Batches: many inputs as one, run by and by."""
