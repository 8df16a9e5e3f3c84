"""From desired counts to commands: what starts, stops, is cut and moves.

`plan` is the entry, `draft` the plan so far, `moves` makes room by moving containers, `mig_switches` changes MIG mode
of idle GPUs, `reservation` keeps devices for the longest waiting ask, `commands` come out. Stands on `search`.
"""
