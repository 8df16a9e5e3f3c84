"""What a step computes, decided in plain Python that every engine shares.

`step_scheduler` plans steps over `token_sequence`s: whose tokens, whose room. `kv_blocks` counts the room and finds
stored prefixes by `prefix_hashes`; `token_shares` and `kv_shares` keep tenants apart, in tokens and in room.
`admission` refuses what cannot run, `adapter_shelf` says which adapters are resident, `counted_draws` has the random
numbers of a position. `scheduled_engine` is the engine around all that, but for the computing. Imports `engine_port`;
torch is unknown here.
"""
