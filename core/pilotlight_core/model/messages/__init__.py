"""The messages between processes, by subject; `wire` encodes and decodes them.

Fields are only added; readers ignore unknown ones. Imports `model` and `model.api`.
"""
