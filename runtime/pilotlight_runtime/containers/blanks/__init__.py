"""Blanks: sandboxes started ahead, each of which becomes one container.

`blank` is one, started by `blank_starter`; `blank_pool` keeps some ready, `blank_pools` of each base environment.
`base_environment` is a sandbox's view of the host (`base_probe` runs its interpreter once), `resource_limits` are its
limits. Entered by `containers` and `node`.
"""
