"""The fleet: nodes, devices, who holds what, and the indexes that make a search fast.

`fleet` is the whole, changed by `occupancy`; `device_classes` groups devices in equal states, `options` and `offers`
say which of them would do for an ask; `reports` makes it agree with what nodes report, `history` keeps what it was,
`audit` checks it. Stands on `asks`, `fragmentation` and `hardware`.
"""
