"""Rollouts of an app: its aliases, how its traffic is split between versions, and what is counted of both sides.

Gateways route by it, the judge decides by it, controllers keep the versions that it names. Everybody may enter; it
enters the plain values alone.
"""
