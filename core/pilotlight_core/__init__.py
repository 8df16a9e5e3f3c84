"""The ground floor: the vocabulary (`model`) and what server processes share (`host`)."""
