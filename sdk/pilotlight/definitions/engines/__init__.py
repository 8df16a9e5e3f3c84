"""The specification of an engine function, whose code is the platform's."""
