"""Streams that go on elsewhere: what functions may ask for, and what their code finds in its container.

Entered by the vocabulary, by the SDK, and by both ends of a stream. Imports nothing.
"""
