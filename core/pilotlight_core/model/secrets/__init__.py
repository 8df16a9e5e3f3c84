"""Secrets of tenants: where functions find them, what may be one, and how their values are hidden in texts.

Everybody may enter, the guest and the SDK too; it enters the plain values alone. Sealing them is the gateways' own.
"""
