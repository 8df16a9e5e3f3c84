"""Plans: commands that lead from the present to the desired state of the fleet.

`plan` is the entry, `draft` the plan so far. `moves` makes room by moving containers, `mig_switches` changes the MIG
mode of idle GPUs, `reservation` reserves devices for the longest waiting ask. The result consists of `commands`.
Imports `search` and the rooms below it.
"""
