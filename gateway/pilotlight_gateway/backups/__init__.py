"""A platform's state as one folder of files, copied while the platform runs, and brought back into an empty one.

`platform_backup` copies the pieces in an order in which none refers to what was copied before it, `platform_restore`
checks all of them before it writes the first.
"""
