"""Shadows: calls of a rollout's two versions that repeat a call whose caller has its answer, to compare them.

A sink of calls that end, and one task. They call through the port of calls, as everybody does; no limit of the tenant
counts them, and the operator pays. Who starts a gateway enters.
"""
