"""Containers on a node: from a bind to the end.

`containers` binds and ends the containers of a node and dispatches calls to them; `container` is the life of one,
`container_start` how it begins, `drain_deadline` how long it may take to end, and `container_io` connects its runner.
`provisioner` brings what a start needs from `blanks/` (sandboxes started ahead) and `files/` (a version's verified
files). `host_budget` is what a host has promised, `start_counts` how starts went.

Entered by `node`.
"""
