"""Calls on a node: from an accepted grant to the last frame.

`slot_table` fences and counts, `accepted_call` is a call a container holds, `batching` decides batches and
`batch_queue` keeps them, `call_runner` turns events of one container into frames. `origin_frames` sends frames to
gateways, `credits` tells homes of free slots, `remote_bodies` fetches large inputs, `waiting_calls` is what survives
the agent's death.

Entered by `containers` and `node`.
"""
