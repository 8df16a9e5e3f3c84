"""JSON Schemas of functions: checking them, and checking values against them.

`schema_guard` refuses schemas that would cost too much, `schema_validators` compiles and keeps validators,
`schema_examples` makes an example value, `plain_messages` rewords what msgspec says of a wrong value.

Entered by `calls`, `deploys`, `jobs`, `batches` and `http`. Imports nothing else of the gateway.
"""
