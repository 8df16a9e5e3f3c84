"""Signatures of tenants over folders, verified: gateways do at a deploy, agents before a load. Loads `cryptography`
with the first one."""
