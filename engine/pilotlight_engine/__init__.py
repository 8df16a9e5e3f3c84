"""Token engines: what turns the tokens of many requests into more tokens, step by step, on one device.

`engine_port` has the protocol; `torch_engine`, `vllm_engine` and `sim_engine` implement it. `scheduling` decides what a
step computes, and `memory_plan` what fits a device. An engine knows token ids only: text is for whoever uses it. Of
Pilotlight this package imports the vocabulary, `pilotlight_core.model`, at most: it runs within sandboxes. torch and
transformers are imported when a torch engine is made, never before.
"""
