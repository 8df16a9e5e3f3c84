"""Pages of the viewer's own tenant: its calls, jobs, logs, money and keys."""
