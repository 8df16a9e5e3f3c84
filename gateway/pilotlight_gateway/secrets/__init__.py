"""Secrets of tenants: sealed values, the keys above them, and who is given a value.

A value is sealed by the data key of its tenant, and that by the platform's key, which a file has or a key service. Only
gateways unseal, and give values to the containers of versions that name them. It enters the fleet and tenants.
"""
