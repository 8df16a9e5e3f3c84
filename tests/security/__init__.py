"""Attacks on a running platform, which ends with the last of them."""
