"""On which side of a rollout calls are: decided once by the gateway that holds the caller, and anew where it was late.

Plain functions over the rollouts' records, and a port of calls over another one. `http/calls/` enters.
"""
