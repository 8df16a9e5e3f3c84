"""Calls of classes with hooks: up to three functions in turn, under one id, with one deadline and one permit.

Entered by `calls` alone, which it shares its values with.
"""
