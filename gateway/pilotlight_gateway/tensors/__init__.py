"""Calls as the Open Inference Protocol has them: named tensors in, named tensors out. Plain functions over values.

datatypes          its datatypes, and the dtypes of arrays
tensor             one tensor: the bytes of its elements, and lists of them
value_kinds        what a schema says a parameter or an answer is, as a tensor
infer_requests     a request, and the arguments that its tensors stand for
infer_bodies       the same as HTTP bodies: JSON, with the bytes of tensors behind it
tensor_answers     the tensors that an answer becomes
model_names        `app.function`, as the name of a model
"""
