"""vLLM behind the port: a child process in an environment of its own, since it needs another torch than ours.

`vllm_engine` starts the child and speaks to it in `child_frames`; `vllm_child` is what runs there. It imports vllm and
the standard library only, and is started by its path: the environment knows nothing of Pilotlight.
"""
