"""The engine on torch: transformers' models, with keys and values in blocks, and many sequences in one forward pass.

`torch_engine` is the engine. `model_folder` reads a model, `step_batch` makes tensors of a plan,
`paged_attention` is what the model's layers call, over `kv_pool` and `decode_rows`. `token_picks` draws tokens,
`lora_files` reads adapters and `lora_layers` applies them. torch and transformers are imported by these modules, and
by nothing above.
"""
