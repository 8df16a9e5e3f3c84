"""Every claim about speed as a command: `python -m benchmarks.NAME [--quick]`."""
