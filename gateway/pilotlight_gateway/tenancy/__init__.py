"""Tenants and what they may do: keys, tiers, limits and shared functions.

  auth              finds the caller's identity from an API key
  api_keys          creates and ends keys; `bootstrap` makes the first one
  tenants           creates and changes tenants; `tenant_limits` their limits, and tiers
  quotas            refuses what a tenant may not keep; `timeout_limit` calls that may take too long
  function_shares   lets other tenants call a function
  name_hints        suggestions for unknown names
  registry_port     the port of the registry, with its fake

Entered by `http.endpoints`, `deploys`, `calls` and `jobs`. Imports nothing else of the gateway.
"""
