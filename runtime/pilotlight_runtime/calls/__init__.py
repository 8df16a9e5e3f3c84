"""Calls on a node: from an accepted grant to the last frame.

`slot_table` fences, counts, and holds the accepted calls, `batching` decides batches and `batch_queue`
keeps them, `call_runner` turns events of one container into frames. `origin_frames` sends frames to gateways,
`credits` publishes free slots, `remote_bodies` transfers large inputs and answers, `waiting_calls` survives the agent's
death; `node_calls` is what all containers share of these.

Entered by `containers` and `node`.
"""
