"""Options of other platforms, with their names here, and those that Pilotlight lacks so far.

All are refused: a dropped option would show only in the bill.
"""

from __future__ import annotations

OPTION_HINTS = {
    "secret": 'secrets={"HF_TOKEN": "hf-token"}',
    "cron": 'schedule=Cron("0 6 * * *")',
    "period": "schedule=Period(minutes=5)",
    "keep_warm": "min_containers=",
    "warm_windows": "warm=",
    "scheduled_scaling": "warm=",
    "min_replicas": "min_containers=",
    "min_instances": "min_containers=",
    "initial_replicas": "min_containers=",
    "concurrency_limit": "max_containers=",
    "max_replicas": "max_containers=",
    "max_instances": "max_containers=",
    "num_replicas": "max_containers= (and min_containers= for those that always run)",
    "workers": "max_containers= (or cpu= for more cores in one)",
    "autoscaler": "min_containers=, max_containers= and scaledown_window=",
    "autoscaling_config": "min_containers=, max_containers= and scaledown_window=",
    "container_idle_timeout": "scaledown_window=",
    "idle_timeout": "scaledown_window=",
    "keep_warm_seconds": "scaledown_window=",
    "downscale_delay_s": "scaledown_window=",
    "downscale_to_zero_delay_s": "zero_window=",
    "buffer": "buffer_containers=",
    "allow_concurrent_inputs": "@concurrent(max_inputs=)",
    "max_ongoing_requests": "@concurrent(max_inputs=)",
    "target_ongoing_requests": "@concurrent(max_inputs=)",
    "max_concurrency": "@concurrent(max_inputs=)",
    "concurrency": "@concurrent(max_inputs=)",
    "max_inputs": "@concurrent(max_inputs=)",
    "num_gpus": 'gpu="any:N"',
    "gpus": 'gpu="any:N"',
    "gpu_count": 'gpu="any:N"',
    "gpu_type": "gpu=",
    "accelerator": "gpu=",
    "gpu_memory": "vram=",
    "gpu_mem": "vram=",
    "num_cpus": "cpu=",
    "cpus": "cpu=",
    "mem": "memory=",
    "ram": "memory=",
    "shm_size": "shm=",
    "shared_memory": "shm=",
    "tmp": "scratch=",
    "tmpfs": "scratch=",
    "pids_limit": "pids=",
    "resources": "gpu=, vram=, cpu= and memory=",
    "ray_actor_options": "gpu= and cpu=",
    "max_retries": "retries= (for code that raised; idempotent=True for containers that died)",
    "task_policy": "retries= and timeout=",
    "egress": "network=",
    "allow_list": "network=",
    "allowed_hosts": "network=",
    "outbound_domain_allowlist": "network=",
    "block_network": "nothing: without network= there is none",
    "envs": "env=",
    "pip": "App(requirements=)",
    "pip_packages": "App(requirements=)",
    "python_packages": "App(requirements=)",
    "dependencies": "App(requirements=)",
    "runtime_env": "App(requirements=) for packages, and env= for variables",
    "env_vars": "env=",
    "environment": "env=",
    "environment_variables": "env=",
    "timeout_s": "timeout=",
    "timeout_seconds": "timeout=",
    "execution_timeout": "timeout=",
    "load_timeout": "startup_timeout=",
    "health_check_timeout": "startup_timeout=",
    "health_check": "check=Example(…), or a method marked @check()",
    "check_health": "check=Example(…), or a method marked @check()",
    "health_check_period_s": "check_every=",
    "health_check_timeout_s": "check_timeout=",
    "warmup_inputs": "warmup=",
    "warm_up": "warmup=",
    "on_start": "a method marked @enter()",
    "on_startup": "a method marked @enter()",
    "on_shutdown": "a method marked @exit()",
    "batch": "@batched(max_batch_size=, wait_ms=)",
    "batchable": "@batched(max_batch_size=, wait_ms=)",
    "max_batch_size": "@batched(max_batch_size=)",
    "wait_ms": "@batched(wait_ms=)",
    "batch_wait_timeout_s": "@batched(wait_ms=)",
    "max_latency_ms": "slo=SLO(p95_ms=)",
    "latency_target": "slo=SLO(p95_ms=)",
    "is_generator": "nothing: a function that yields is a generator",
    "mig": 'isolation="mig"',
    "exclusive": 'isolation="exclusive"',
    "nonpreemptible": "spot=False",
    "preemptible": "spot=True",
    "regions": "region=",
    "availability_zone": "zone=",
    "placement_group": 'spread="node" or spread="zone"',
    "anti_affinity": "spread= (of its own containers) or avoid= (of other functions)",
}
"""Another platform's option -> what it is here."""

BATCHED_HINTS = {
    "batch_size": "max_batch_size=",
    "max_size": "max_batch_size=",
    "batch_wait_timeout_s": "wait_ms= (milliseconds)",
    "max_latency_ms": "wait_ms=",
    "timeout_ms": "wait_ms=",
    "wait": "wait_ms=",
    "batch_size_fn": "cost=",
    "max_concurrent_batches": "nothing: one batch runs in a container at a time",
}
CONCURRENT_HINTS = {
    "target_inputs": "max_inputs=: the platform finds the target itself",
    "max_concurrency": "max_inputs=",
    "max_ongoing_requests": "max_inputs=",
}

NOT_YET = {
    "volumes": "shared volumes come later; small files are packed with the app",
    "volume": "shared volumes come later; small files are packed with the app",
    "disks": "shared volumes come later; small files are packed with the app",
    "network_file_systems": "shared volumes come later; small files are packed with the app",
    "cloud_bucket_mounts": "shared volumes come later; small files are packed with the app",
    "image": "functions run in a base environment of the node: App(base=) says which, App(requirements=) adds packages",
    "proxy": "a function connects through the platform's proxy: network= names the hosts",
    "cloud": "nodes say their region and zone, not their provider: use region= or zone=",
    "enable_memory_snapshot": "started sandboxes stand ready already; snapshots come later",
    "checkpoint_enabled": "started sandboxes stand ready already; snapshots come later",
    "ephemeral_disk": "a container has /tmp in memory, of the size of scratch=; scratch disks come later",
    "single_use_containers": "containers are used again; a container for one call comes later",
    "callback_url": "webhooks are the tenant's, not a function's: 'pilotlight webhook create URL' tells when jobs end",
    "webhook": "webhooks are the tenant's, not a function's: 'pilotlight webhook create URL' tells when jobs end",
    "asgi_app": "every function has an HTTP endpoint of its own; whole web apps come later",
    "max_pending_tasks": "queues are bounded per tenant: operators set queue_calls= with 'pilotlight quota set'",
    "max_queued_requests": "queues are bounded per tenant: operators set queue_calls= with 'pilotlight quota set'",
    "max_spend": "there are no budgets yet; operators bound a pace: 'pilotlight quota set TENANT cost_per_s=N'",
    "serialized": "code travels as files, never as a pickle",
}
"""An option that Pilotlight lacks -> what it waits for."""


OF_THE_APP = {
    "base": "App(NAME, base=) says it for all of its functions",
    "requirements": 'App(NAME, requirements=["duckdb==1.3.0"]) says it for all of its functions',
}
"""An option of `App` -> how it is given."""


def explain_unknown(name: str, known: frozenset[str], hints: dict[str, str]) -> str:
    """Return the sentence that refuses `name`, with the option that was probably meant."""
    if name in NOT_YET:
        return f"{name}= is not supported yet: {NOT_YET[name]}."
    if name in OF_THE_APP:
        return f"{name}= is an option of the app, not of a function: {OF_THE_APP[name]}."
    if name in hints:
        return f"{name}= is another platform's word; here it is {hints[name]}."
    from difflib import get_close_matches

    near = get_close_matches(name, sorted(known | hints.keys()), n=1, cutoff=0.6)
    if near and near[0] in known:
        return f"{name}= is not an option; did you mean {near[0]}=?"
    if near:
        return f"{name}= is not an option; here it is {hints[near[0]]}."
    return f"{name}= is not an option; the options are {', '.join(sorted(known))}."


def explain_of_app(name: str, of_functions: frozenset[str]) -> str:
    """Return the sentence that refuses `name` as an option of an App."""
    if name in NOT_YET:
        return explain_unknown(name, of_functions, OPTION_HINTS)
    if name in of_functions:
        return f"{name}= is an option of a function, not of the app: @app.gpu_function({name}=)."
    return f"{name}= is not an option of an app: those are base=, requirements= and tags=."
