"""The vocabulary of the platform: ids, units, values, errors, specs and messages. Standard library and msgspec only."""
