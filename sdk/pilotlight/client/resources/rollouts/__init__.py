"""Versions that callers reach: aliases, going back, rollouts."""
