"""What tenants push once and many functions read: weights."""
