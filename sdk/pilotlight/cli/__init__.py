"""The command line: one module a command in `commands`, and beside it what commands share."""
