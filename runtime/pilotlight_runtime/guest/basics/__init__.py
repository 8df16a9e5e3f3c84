"""What of a guest knows nothing of its frames: arguments, errors as they are sent, where secrets go, the way out of the
sandbox, and whether CUDA is open.

The rest of the guest enters; it enters none of it.
"""
