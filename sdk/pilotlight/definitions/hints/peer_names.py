"""Names that users of other platforms import or look for, with what there is here."""

from __future__ import annotations

FUNCTION = "@app.gpu_function decorates functions and classes"
ENDPOINT = "every function has an HTTP endpoint of its own, POST /v1/functions/APP.FUNCTION/calls, without a decorator"
QUEUE = ".spawn() stores a call as a job, and .map() many of them"
STATE = "nothing is shared between containers yet: what one keeps in its memory, its own calls see"
SANDBOX = "a container runs deployed functions only"
IMAGE = "functions run in a base environment of the node: App(base=) says which, App(requirements=) adds packages"
MAIN = "a plain script that calls .remote() does it, and 'pilotlight run FILE::FUNCTION' calls one function"
SETTING = "PILOTLIGHT_URL and PILOTLIGHT_API_KEY, or Client(url=, api_key=), say where the platform is"
VOLUME = "there are no volumes yet; small files are packed with the app"

MODULE_NAMES = {
    "Image": IMAGE, "Secret": "secrets= of @gpu_function names those of 'pilotlight secret set'",
    "Volume": VOLUME, "NetworkFileSystem": VOLUME, "CloudBucketMount": VOLUME, "Mount": VOLUME,
    "Stub": "it is App", "Dict": STATE, "Queue": f"{STATE}; {QUEUE}",
    "schedule": "schedule= of @gpu_function is Cron(\"0 6 * * *\") or Period(minutes=5)",
    "Retries": "retries= of @gpu_function is a number; the pauses double by themselves",
    "Sandbox": SANDBOX, "Pod": SANDBOX, "Tunnel": SANDBOX, "forward": SANDBOX,
    "gpu": 'gpu= of @gpu_function is a text: gpu="H100", gpu=["L4", "A10"], gpu="any"',
    "remote": FUNCTION, "deployment": FUNCTION, "service": FUNCTION,
    "build": "what takes long goes into a method marked @enter(), which runs once in each container",
    "on_start": "it is @enter()", "on_health_check": "it is @check()", "on_shutdown": "it is @exit()",
    "parameter": "classes take no parameters yet: give them to the method",
    "batch": "it is @batched(max_batch_size=, wait_ms=)",
    "api": "it is @method()",
    "web_endpoint": ENDPOINT, "fastapi_endpoint": ENDPOINT, "endpoint": ENDPOINT, "ingress": ENDPOINT,
    "asgi_app": f"{ENDPOINT}; whole web applications come later",
    "wsgi_app": f"{ENDPOINT}; whole web applications come later",
    "web_server": f"{ENDPOINT}; whole web applications come later", "asgi": ENDPOINT, "realtime": ENDPOINT,
    "task_queue": QUEUE, "Output": "a function returns its answer; files come later",
    "depends": "a function calls another one by .remote(), and runs plain Python calls in its own container",
    "Runner": FUNCTION, "local_entrypoint": MAIN, "run": MAIN, "serve": "'pilotlight deploy' does it",
    "deploy": "it is a command: 'pilotlight deploy FILE'",
    "init": SETTING, "get": "the FunctionCall of .spawn() has .get()",
    "put": "arguments travel with the call", "wait": "FunctionCall.gather(*calls) waits for several",
    "is_local": "nothing tells: .local() runs here, .remote() on the platform",
    "enable_output": "'pilotlight logs -f APP' shows what functions print",
    "current_function_call_id": "nothing tells a function its call yet",
}  # fmt: skip
"""Of the module: `from pilotlight import Image`."""

APP_NAMES = {
    "function": "@app.gpu_function", "cls": "@app.gpu_function", "server": "@app.gpu_function",
    "task": "@app.gpu_function", "local_entrypoint": MAIN, "run": MAIN, "deploy": MODULE_NAMES["deploy"],
    "include": "apps are deployed one by one; other modules are imported as usual",
    "image": IMAGE, "registered_functions": "functions",
}  # fmt: skip
"""Of an App: `app.local_entrypoint()`."""

FUNCTION_NAMES = {
    "lookup": "Function.from_name(app, name)", "call": ".remote()", "submit": ".spawn()", "delay": ".spawn()",
    "apply_async": ".spawn()", "remote_async": ".remote.aio()", "for_each": ".map()", "bind": ".remote()",
    "with_options": ".options()", "web_url": ENDPOINT, "get_web_url": ENDPOINT,
    "keep_warm": "min_containers= of @gpu_function, or .update_autoscaler(min_containers=)",
    "serve": MODULE_NAMES["serve"], "deploy": MODULE_NAMES["deploy"],
}  # fmt: skip
"""Of a function: `embed.keep_warm(1)`."""
