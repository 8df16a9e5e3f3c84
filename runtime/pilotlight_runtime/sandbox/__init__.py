"""Sandboxes: the walls around tenant code.

`sandbox_port` is the port; `launchers` names its implementations `bubblewrap` and `plain_process`, both built on
`watched_process`. `sandbox_spec` describes one sandbox, `mounts` and `interpreter` what it sees of the host,
`exec_chain` the programs between agent and guest, `cgroups`, `seccomp` and `host_uids` its limits. `sandbox_probe`
tries inside what must not work; `fake_launcher` is for tests.

Entered by `containers`, `devices` and `node`; imports no other room of the runtime.
"""
