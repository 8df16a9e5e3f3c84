"""What the controller has bound where: the records by which homes and the ledger believe nodes.

`binding_terms` makes the record of a bind, `binding_cleanup` finds those whose containers have ended. `controller`
enters.
"""
