"""The fleet: nodes, devices, the containers on them, and the indexes that make a search fast.

`fleet` is the whole, `occupancy` what is taken; `device_classes` groups devices, `group_index` keeps their states;
`offers` says which groups serve an ask; `reports` follows the nodes, `history` keeps what was, `audit` checks it all.
Stands on `asks`, `fragmentation` and `hardware`.
"""
