"""The base of all packages: the vocabulary (`model`), the bus (`bus`), and parts that server processes share (`host`)."""
