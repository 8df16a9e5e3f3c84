"""Certificates of the platform's own servers: the small authority of `pilotlight ca`, and what listeners serve with.

Whoever has an authority or cert-manager needs only `server_context.py`. Every process may import it.
"""
