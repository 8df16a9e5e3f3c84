"""Checks of this repository that no off-the-shelf tool makes."""
