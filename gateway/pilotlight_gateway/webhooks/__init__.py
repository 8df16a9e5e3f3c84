"""Webhooks: tenants are told when their jobs end."""
