"""Classes whose calls run through hooks before and behind the method, in containers of their own on CPU slots.

Entered by the vocabulary, by the SDK, by deploys, and by the origins of calls. Imports units alone.
"""
