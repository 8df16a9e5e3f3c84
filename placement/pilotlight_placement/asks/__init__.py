"""What one container needs: memory, slices, speed.

`ask` is the request, `vram` and `memory_need` compute device memory, `curves` and `curve_book` know measured
throughput. Stands on `hardware`.
"""
