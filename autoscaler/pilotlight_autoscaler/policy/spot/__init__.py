"""Which nodes a pool has of machines that their provider may take away: where, how many, and what stands in for them.

`spot_fleet.py` decides, over `avoided_zones.py`. Plain functions over values: whoever launches nodes asks them, and
`benchmarks.spot` does over weeks. Imported by the process and its rooms; it imports nothing of theirs.
"""
