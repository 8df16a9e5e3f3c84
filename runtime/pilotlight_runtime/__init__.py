"""The runtime: what runs on each node.

`node` is the agent, which puts everything together. It keeps `containers`, which run tenant code in a `sandbox`, on
the `devices` that the node has; `calls` is what they work on, `metering` and `logs` what is told of it. `guest` is
the other end: what runs inside a sandbox, and imports nothing else of the runtime.
"""
