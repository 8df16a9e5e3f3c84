"""The fronts for clients of other platforms: the Open Inference Protocol, and the fixed inference API.

model_lookup       which function and method a model's name stands for
model_calls        the steps of a call of tensors, over HTTP and gRPC
infer_endpoint     `POST /v2/models/{model}/infer`
model_endpoints    what is shown of models and of the server
model_views        metadata and configurations, as the protocol has them
inference_counts   how often models were called here, and how long it took
body_codings       bodies that are gzip or deflate
fixed_inference    `POST /v1/inference` and what goes with it
front_operations   their operations
"""
