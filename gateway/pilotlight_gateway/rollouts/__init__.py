"""Rollouts as they run: what gateways tell of compared calls, who reads it, decides and acts, and what people ask for.

Each gateway tells; the one that holds the lease keeps all rollouts. Who starts a gateway enters, and its endpoints.
"""
