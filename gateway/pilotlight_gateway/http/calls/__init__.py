"""`POST /v1/functions/{ref}/calls`: the one endpoint that must be lean, part by part.

`call_endpoint` takes the request: `call_limits` counts it, `call_reader` makes a call of it, and one of four answers
it: `unary_calls` (with `call_answers` and `call_watch`), `call_stream`, `keyed_call_answers`, or `endpoints.jobs`.

Entered by `http.edge` and the composition root.
"""
