"""What the platform connects to on behalf of tenants: which addresses it may be, and whose names are asked for."""
