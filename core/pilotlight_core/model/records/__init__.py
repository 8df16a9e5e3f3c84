"""Records in the bus's key-value buckets that outlive every process: jobs and batches, and their transitions.

Imports `model.messages` and `model.api`.
"""
