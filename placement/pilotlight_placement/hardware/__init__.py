"""Which devices there are and how they can be cut.

`catalogue` reads the kinds of GPU from `catalogue.toml`, `geometry` is the arithmetic of MIG placements, `node` the
values a fleet is made of. Entered from everywhere in placement; imports nothing else of it.
"""
