"""Nodes that join by a token: their identities, and what operators say of nodes."""
