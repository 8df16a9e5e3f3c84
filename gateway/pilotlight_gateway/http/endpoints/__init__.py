"""One module per resource of the API: it reads the request, asks a port, and renders the answer.

`calls` is the path that must be lean; `call_stream`, `call_watch`, `call_limits` and `keyed_calls` belong to it.

Entered by `http/routes`, `http/app` and `http/edge`. Endpoints decide nothing themselves.
"""
