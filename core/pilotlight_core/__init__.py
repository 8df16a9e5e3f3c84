"""The ground floor: the vocabulary (`model`), the bus (`bus`), and what server processes share besides (`host`)."""
