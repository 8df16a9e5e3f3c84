"""What runs a call for which its function has no room: what functions may say of it.

Plain values and their faults; everybody may enter, and it enters nothing.
"""
