"""The native HTTP API: one ASGI application over the ports of the gateway.

`server` is uvicorn with our protocol (`quiet_server`: without its looks at the clock), `app` the application, `routes`
its operations. `calls/` serves calls, `endpoints/` has one module per other resource, `protocol/` what all of them use.

Entered by the composition root; `duties` uses `server` to serve metrics.
"""
