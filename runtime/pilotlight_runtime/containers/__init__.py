"""Containers on a node: from a bind to the end.

`container` is the life of one, `containers` all of a node. `blank` is a sandbox started ahead, `blank_pool` keeps
some ready; `staging` fetches and links a version's files (`bundle`, `file_cache`); `container_io` connects a
container's runner to guest, gateways, meter and slots; `base_environment` is what a sandbox sees of the host,
`resource_limits` what it may use.

Entered by `node`.
"""
