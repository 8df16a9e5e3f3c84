"""One module per resource of the API: it reads the request, asks a port, and renders the answer.

Each group of endpoints names what it needs in a dataclass of its own. Endpoints decide nothing themselves.

Entered by `http.routes`, `http.calls` (for jobs) and the composition root.
"""
