"""The origin side of live calls: a gateway holds the callers of its calls here, from the request to the answer.

The life of a call
------------------
1. `call_requests` reads it: `http` and `jobs` hand a `PreparedCall` to `call_service` (the real `call_port.CallPort`;
   `call_fake` is the one in memory). The caller's task waits there, on an `AwaitedCall`, for its answer.
2. `origins` is the driver. It enters the call into its `call_book` and asks its `Origin` what to do.
3. `origin` is the state machine of one call: QUEUED, SENT, RUNNING, DONE. It reads no clock and sends nothing; it says
   what it wants by `effects`, such as `Enqueue`, `SendRun`, `FinishCall`.
4. `effect_runner` performs them: a word to the home goes to the `Router` (`cluster`), which knows where that home is; a
   run goes to its agent; chunks and the end go to the caller. It also sets the alarm for what the origin waits for.
5. The home's grant waits in the driver's inbox until its turn. `Origin.granted` answers it with a `SendRun`, unless the
   call has a grant already or has ended: then the grant is declined.
6. The agent's frames (`Started`, `Chunk`, `Ended`, `Refused`) come to `origins.frame`. A call that provably never
   started
   goes back to its home; one that ended well becomes a `CallResult`; `call_failures` makes errors of the rest, and
   `redaction` says what of them a caller may see.
7. `reconciler` asks agents about calls that are silent, and about starts that run on after their caller has left.
8. `call_responses` turns the result into bytes; the book remembers for a while how the call ended.

Beside it: `large_bodies` serves agents what is too large for the bus, `byte_budget` and `fair_memory` bound what is
held, `stopwatch` measures the stages.

Entered by `http/endpoints`, `jobs` and the composition root, through `call_port`. Of `home` it knows records alone.
"""
