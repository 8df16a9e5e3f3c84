"""The runtime: what runs on each node.

`node` is the agent, which connects the other rooms: `containers` run tenant code in a `sandbox` on `devices`, `calls`
are their work, `metering` and `logs` record it. `guest` runs inside a sandbox and imports nothing else of the runtime.
"""
