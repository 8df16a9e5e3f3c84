"""The fleet: nodes, devices, the containers on them, and the indexes for a fast search.

`fleet` is the whole: `fleet_nodes` has the nodes, `device_groups` their devices in groups of alike ones
(`device_classes`), `function_containers` the containers of each function; `occupancy` is the used parts, `group_index`
maintains the groups' states. `offers` says which groups serve an ask; `reports` follows the nodes' reports, `history`
records changes, `audit` checks everything. Imports `asks`, `fragmentation` and `hardware`.
"""
