"""What every endpoint uses: bodies within bounds, one exchange, streamed and large answers, problem documents.

`operations` describes an operation, `openapi` and `function_openapi` publish it, `exchange` is one request and what
is known of its answer, `request_bodies` and `large_answers` bound memory, `event_answers` sends piece by piece,
`problems` renders errors as RFC 9457 documents, `drain_gate` counts calls so that the process can end without cutting
them off.

Entered by `http` and `http/endpoints`.
"""
