"""Models: the names under which functions are served to clients of OpenAI's API, and who has which name.

A plain room: it imports msgspec and the standard library only.
"""
