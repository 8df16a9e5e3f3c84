"""Files of tenants: stored in parts, within their quota, until they expire.

Entered by HTTP alone.
"""
