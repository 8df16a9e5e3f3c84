"""The home side of calls: the fair queue of each function, and the decision which call runs where.

`home` takes a call from its arrival to its end. It has a `version_queue` per version, made of `queue` and `tier_queue`
(the order of calls), `container_pool` (free slots), `call_admission`, `shedding` (calls dropped for others),
`breakers` (containers that fail) and `slowdown`. `queued_calls` is its index of what waits and drops what cannot be
done, `grant_book` has what was granted. `version_demand` tells the controller of a version, `home_state` moves with a
shard; metrics and controllers read `home_report`.

`homes` drives one home per owned shard over a `DriverPort`. The rest are plain functions and state machines: instants
are arguments, and nothing waits or sends. The room knows `cluster`, never `calls`.

Between origin and home
-----------------------
Bodies and sockets stay at the *origin*, a gateway that may be another one:

    origin -> home   Enqueue    queue this; repeated until the home answers (idempotent)
                     HandBack   an agent did not take the grant: back to its place, uncharged
                     Settle     it ended: the slot is free, and this is the cost
                     Withdraw   the caller has left
    home -> origin   Grant      this call may go to that container, once
                     Dropped    this call leaves the queue with an error

A grant is a permission that only its origin can use, and an origin uses one at a time. So a home may forget an unused
grant, and the home after a crash starts empty: origins enqueue what was not granted, credits list what containers hold,
and agents refuse grants of an older `epoch` (the revision of the lease). Each grant of a call has a higher number than
any that its origin has seen.
"""
