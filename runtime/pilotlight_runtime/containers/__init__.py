"""Containers on a node: from a bind to the end.

`containers` binds and ends the containers of a node and dispatches calls to them; `container` is the life of one, and
`container_io` connects its runner. `blank` is a sandbox started ahead by `blank_starter`; `blank_pool` keeps some
ready, `blank_pools` of each base environment. `provisioner` brings what a start needs: `staging` fetches a version's
files (`version_files`, `bundle`, `artifact_files`, `file_cache`) if they fit on the disk (`disk_room`),
`base_environment` is the sandbox's view of the host (`base_probe` runs its interpreter once), `resource_limits` its
limits.

Entered by `node`.
"""
