"""How large a function may be: its specification, its warm windows, and people's word over both.

Gateways show it and controllers go by it. Everybody may enter; it enters the plain values alone.
"""
