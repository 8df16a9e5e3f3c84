"""A small language model, trained on this machine and served as an engine function."""
