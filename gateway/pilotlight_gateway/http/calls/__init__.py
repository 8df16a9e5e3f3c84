"""`POST /v1/functions/{ref}/calls`: the one endpoint that must be lean.

`warm_call` takes what needs nothing but its result: a `call_head` that is plain, a route that is known (`call_routes`).
`call_endpoint` awaits whatever the others need, and hands them to `unary_calls`, `call_stream`, `keyed_call_answers` or
`endpoints.jobs`. Both count a request by `call_limits` and make a call of it by `call_reader`. A stream that outlives
its connection is `kept_answer`'s, and `call_events` serves whoever comes back for it.

Entered by the composition root.
"""
