"""Containers on a node: from a bind to the end.

`container` is the life of one, `containers` binds and ends all of a node and dispatches calls to them.
`blank` is a sandbox started ahead: `blank_starter` starts one, `blank_pool` keeps some ready. `staging` fetches and
links a version's files (`bundle`, `file_cache`), `provisioner` brings all that a start needs. `container_io` connects a
container's runner to guest, gateways, meter and slots; `base_environment` is what a sandbox sees of the host,
`resource_limits` what it may use.

Entered by `node`.
"""
