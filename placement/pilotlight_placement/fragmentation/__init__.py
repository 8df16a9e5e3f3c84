"""The cost of a placement to later asks.

`mask_fragmentation` scores places on MIG devices; `place_costs` all others, by `share_fragmentation` (what a device can
expect to carry) and `host_fragmentation` (what a node can carry with its host). `scores` has the tables of a mix of
demand, `scarcity` computes which models are scarce, `histogram` has the recent mix of asks. Imports `asks` and
`hardware`.
"""
