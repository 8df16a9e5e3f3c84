"""Endpoints, one module per resource: each reads a request, asks a port and renders the answer.

A dataclass per group (`...Services`) holds the ports that it needs.

Entered by `http.routes`, `http.calls` (for jobs) and the composition root.
"""
