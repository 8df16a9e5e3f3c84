"""Machines that come and go: records of pools and launches, what providers do, and the keeper that drives them.

What should be done is decided in `policy/nodes`. `node_pool` is the port, `providers/` are its sides to the world.
"""
