"""The home side of calls: the fair queue of each function, and the decision which call runs where.

`home` tells the story of a call. It has a `version_queue` per version, made of `queue` and `tier_queue` (who goes
next), `container_pool` (free slots), `call_admission` and `shedding` (who is let in, who gives way), `breakers`
(containers that fail) and `slowdown`. `home_state` moves with a shard; metrics and controllers read `home_report`.

`homes` drives one home per owned shard over a `DriverPort`. The rest are plain functions and state machines: instants
are arguments, and nothing waits or sends. The room knows `cluster`, never `calls`.
"""
