"""Kinds of devices and the ways to cut them.

`catalogue` reads the kinds of GPU from `catalogue.toml`, `geometry` computes MIG placements, `node` has the values that
a fleet consists of. Every other room of placement imports it; it imports none of them.
"""
