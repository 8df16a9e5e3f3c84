"""Tenants and what they may do: their keys, tiers, limits and shared functions.

  auth                finds the caller's identity from an API key
  api_keys            creates, lists, rotates and revokes keys; `bootstrap` makes the first one
  tenants             the operator's resource; so are the limits and tiers of `tenant_limits`
  function_shares     lets other tenants call a function
  scheduling_class    the tier and weight of a call
  name_hints          suggestions for unknown names
  registry_port       the port of the registry, with its fake

Entered by `http.endpoints`, `deploys`, `calls` and `jobs`. Imports nothing else of the gateway.
"""
