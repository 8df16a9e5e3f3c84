"""Tenants, their keys, tiers and limits as resources, and who may do what.

`auth` finds the caller's identity from an API key, `api_keys` makes, lists and revokes keys,
`tenants` and `tenant_limits` are the operator's resources, `function_shares` lets one tenant call another's function,
`scheduling_class` is the tier and weight of a call, `name_hints` suggests names, `bootstrap` makes the first key.
`registry_port` is what this room asks of the registry, with its fake.

Entered by `http.endpoints`, `deploys`, `calls` and `jobs`. Imports nothing else of the gateway.
"""
