"""The needs of one container: memory, slices, speed.

`ask` is the request; `vram` and `memory_need` compute device memory; `curves` and `curve_book` have measured
throughput; `options` says which slices of a device serve an ask. Imports `hardware`.
"""
