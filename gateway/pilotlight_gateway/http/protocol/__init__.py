"""What every endpoint uses: bodies within bounds, one exchange, streamed and large answers, problem documents.

`http_exchange` is one request, and the outermost application; what needs no task is found by `known_heads`.
`api_operations` describes and binds an operation, `openapi` and `function_openapi` publish it. `request_bodies`,
`large_answers` and `slot_limit` bound resources, `event_answers` sends streams, `problem_answers` encodes errors (RFC
9457), `drain_gate` and `readiness` admit calls.

Entered by `http` and its rooms.
"""
