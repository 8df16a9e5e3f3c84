"""Traces: which one a call belongs to, in W3C's words, and what is kept of a call that somebody may ask about.

Rooms of all processes import it, guests too; it knows no bus and no collector.
"""
