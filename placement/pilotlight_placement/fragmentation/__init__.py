"""What a placement costs later asks.

`mask_fragmentation` scores MIG devices, `share_fragmentation` shared ones, `scores` tabulates both over all states of
a device, `scarcity` finds scarce models, `histogram` remembers which asks come. Stands on `asks` and `hardware`.
"""
