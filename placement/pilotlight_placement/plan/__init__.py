"""From desired counts to commands: what starts, stops, is cut and moves.

`plan` is the entry, `draft` what is planned so far, `moves` frees room by moving containers, `mig_switches` changes
MIG mode of idle GPUs, `reservation` keeps devices for whoever has waited longest, `commands` are what comes out.
Stands on `search`.
"""
