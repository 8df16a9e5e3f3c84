"""What processes send each other over the bus, by subject; `wire` encodes and decodes all of them.

Fields are only added; readers ignore what they do not know. Stands on `model` and `model.api`.
"""
