"""What a tenant may ask for, held exactly over all gateways: see docs/limits.md."""
