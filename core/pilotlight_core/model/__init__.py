"""The platform's types: ids, units, values, errors, specs and messages. Imports the standard library and msgspec."""
