"""One node: the agent and what it says of itself.

`agent` puts everything together, `node_reports` reports each second and on change, `node_check` shows what a node
guarantees, `layout_keeper` restores MIG layouts after a start of the host, `agent_folders` are the agent's own
folders, `stall` notices that the process stood still.

Entered by `python -m pilotlight_runtime` and the commands.
"""
