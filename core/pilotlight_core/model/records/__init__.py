"""What is stored in the bus's key-value buckets and outlives every process: jobs and batches, and their transitions.

Stands on `model.messages` and `model.api`.
"""
