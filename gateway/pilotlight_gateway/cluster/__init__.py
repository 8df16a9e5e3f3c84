"""Several gateways as one: which gateway is the home of which shard, and how gateways reach each other.

`shards` holds this gateway's lease and the shards it owns, as `shard_plan` decides; `homes` drives the `home` of each
of them; `outbox` gathers messages to other gateways; `identity_guard` refuses a second process under a living
gateway's name.

Entered by the composition root, `calls`, `jobs` and `limits`.
"""
