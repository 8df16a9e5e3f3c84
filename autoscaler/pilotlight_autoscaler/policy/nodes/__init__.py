"""Which nodes of which pools should be there: what to launch, what goes, and what is next for each machine. Pure.

It reads records of pools and launches, a fleet and prices; the room `pools` of the controller acts on what it says.
"""
