"""JSON Schemas of type hints."""
