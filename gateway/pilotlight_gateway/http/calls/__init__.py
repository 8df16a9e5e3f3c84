"""`POST /v1/functions/{ref}/calls`: the one endpoint that must be lean.

`call_endpoint` counts a request under its tenant's limits, makes a call of it, and hands it to `unary_calls`,
`call_stream`, `keyed_call_answers` or `endpoints.jobs`.

Entered by the composition root.
"""
