"""The Open Inference Protocol over gRPC, on a listener of its own. It needs the extra `grpc`.

infer_messages     the protocol's messages, in a descriptor pool of their own
infer_values       requests and answers as messages
status_codes       the status of each error
grpc_requests      one request: who asks, its limits, and how its errors are told
inference_service  the methods
infer_stream       ModelStreamInfer
grpc_listener      the server, its certificate, and its end
"""
