"""Calls on a node: from an accepted grant to the last frame.

`slot_table` decides which container holds which call. `call_runner` turns the events of one container into frames for
its `runner_io`; `batching` decides its batches and `batch_queue` keeps them, `chunk_relay` relays its streams,
`abandoned_work` finds what goes on unwanted, `call_errors` bounds the texts of errors. `origin_frames` sends frames to
gateways, `credits` publishes free slots, both over `gateway_links` to those that have one. `remote_bodies` transfers
large inputs and answers, `waiting_calls` notes unstarted calls for the next agent. `node_calls` bundles what all
containers share.

Entered by `containers` and `node`.
"""
