"""What a version is: the bytes that are signed, its identity, and what is looked for in its specification.

`spec` has the specification and the manifest themselves. Everybody may enter; it enters the plain values alone.
"""
