"""The registry's records by key, and the parts of the registry that are made of them.

The registry alone enters, and whoever watches its records.
"""
