"""The home side of calls: the fair queue of each function, and the decision which call runs where.

`home` takes a call from its arrival to its end. It has a `version_queue` per version, made of `queue` and `tier_queue`
(the order of calls), `container_pool` (free slots), `call_admission`, `shedding` (calls dropped for others),
`breakers` (containers that fail) and `slowdown`. `home_state` moves with a shard; metrics and controllers read
`home_report`.

`homes` drives one home per owned shard over a `DriverPort`. The rest are plain functions and state machines: instants
are arguments, and nothing waits or sends. The room knows `cluster`, never `calls`.
"""
