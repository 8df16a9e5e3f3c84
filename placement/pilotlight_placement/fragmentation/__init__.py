"""The cost of a placement to later asks.

`mask_fragmentation` scores places on MIG devices, `share_fragmentation` those on shared devices, `scores` tabulates
both over all states of a device. `scarcity` computes which models are scarce, `histogram` the recent mix of asks.
Imports `asks` and `hardware`.
"""
