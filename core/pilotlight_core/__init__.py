"""The base of all packages: the vocabulary (`model`), the bus (`bus`), and shared parts of server processes (`host`)."""
