"""Engines: what an engine function says of its engine, and what its methods take. Imports nothing."""
