"""The fleet: nodes, devices, the containers on them, and the indexes for a fast search.

`fleet` is the whole, `occupancy` the used parts; `device_classes` groups devices, `group_index` maintains their states;
`offers` says which groups serve an ask; `reports` follows the nodes' reports, `history` records changes, `audit` checks
everything. Imports `asks`, `fragmentation` and `hardware`.
"""
