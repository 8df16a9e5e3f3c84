"""JSON Schemas of functions, and checks of values against them.

  schema_guard       refuses expensive schemas
  schema_validators  compiles and runs validators
  version_schemas    reads a version's schemas from its manifest, where they are too large for its record
  plain_messages     rewords msgspec's messages

Entered by `calls`, `deploys`, `jobs`, `batches` and `http`. Imports nothing else of the gateway.
"""
