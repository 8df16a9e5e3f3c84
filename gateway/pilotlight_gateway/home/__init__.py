"""The home side of calls: the fair queue of each function, and the decision which call runs where.

`home` is the story: it queues calls, counts the free slots of their containers, and grants. It has a `version_queue`
per version, made of `queue` and `tier_queue` (who goes next), `container_pool` (free slots), `call_admission` and
`shedding` (who is let in, who gives way), `breakers` (containers that fail), `slowdown`. `home_state` is what moves
with a shard, `home_report` what metrics and controllers read.

`homes` is the driver: one home for each shard that is ours, told what comes and asked in each turn, over a port. All
else is a plain function or state machine: instants are arguments, nothing waits, nothing is sent. Never imports
`calls`."""
