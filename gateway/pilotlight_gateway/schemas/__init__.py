"""JSON Schemas of functions, and checks of values against them.

  schema_guard       refuses schemas whose validation would cost too much
  schema_validators  compiles validators, keeps them and runs them
  schema_examples    makes an example value for a schema
  plain_messages     rewords msgspec's messages about wrong values

Entered by `calls`, `deploys`, `jobs`, `batches` and `http`. Imports nothing else of the gateway.
"""
