"""The origin side of live calls: a gateway holds the callers of its calls here.

The life of a call
------------------
1. `http` and `jobs` hand a `PreparedCall` to `call_service`, the real `call_port.CallPort`
   (`call_fake` is the one in memory). There a task awaits an `AwaitedCall`, and a waiter is told by a `WaitedCall`.
2. `origins`, the driver, enters the call into its `call_book`
   and calls its `Origin`.
3. `origin` is the state machine of one call: QUEUED, SENT, RUNNING, DONE.
   It reads no clock and sends nothing; it returns `effects`,
   such as `Enqueue`, `SendRun` and `CallResult`.
   It keeps what its `attempts` took, which `retries` are left,
   and how far the `stream_relay` of a stream is.
4. The driver's `EffectRunner` performs them:
   what is for the home goes to the `Router` (`cluster`), which knows where the home is;
   a run goes to its agent; chunks and the end go to the caller.
   It also sets the alarm at which the origin wants its next `tick`.
5. The home's grant waits in the driver's inbox until its turn.
   `Origin.granted` answers with a `SendRun`,
   or declines it.
6. The agent's frames (`Started`, `Chunk`, `Ended`, `Refused`) come to `Origins.on_frame`.
   A call that provably never started goes back to its home;
   one that ended well becomes a `CallResult`;
   `call_failures` makes errors of the rest,
   and `redaction` removes what a caller must not see.
7. `reconciler` asks agents for calls that are silent,
   and for starts that run on after their caller has left.
8. `call_responses` encodes the result;
   the book keeps for a while how the call ended.

A call of a class with hooks has up to three origins in turn, which its `call_pipeline` makes.

`collected_chunks` makes one answer of a stream,
`large_bodies` serves agents what is too large for the bus.

Entered by `http`, `jobs` and the composition root, through `prepared_call` and `call_port`.
Of `home` it knows records alone.
"""
