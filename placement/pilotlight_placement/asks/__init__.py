"""What one container needs: memory, slices, speed.

`ask` is the request, `vram` and `memory_need` compute device memory, `curves` and `curve_book` know measured
throughput, `options` says which slices of a device serve an ask. Stands on `hardware`.
"""
