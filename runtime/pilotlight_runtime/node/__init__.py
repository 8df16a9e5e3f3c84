"""One node: the agent and its reports.

`agent_parts` builds the agent's parts, `agent` drives them, `node_reports` reports each second and on change,
`node_check` tests what a node guarantees, `layout_keeper` restores MIG layouts after a restart of the host,
`agent_folders` are the agent's own folders.

Entered by `python -m pilotlight_runtime` and the commands.
"""
