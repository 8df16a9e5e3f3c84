"""The base of all packages: the types (`model`), the bus (`bus`), and shared parts of server processes (`host`)."""
