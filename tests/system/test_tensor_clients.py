"""The unmodified `tritonclient`, over HTTP and gRPC, against a whole platform."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.system.support.platform import platform
from tests.system.support.sample_apps import APPS

pytestmark = pytest.mark.system
CLIENT = """
    import json, os, queue
    import numpy as np
    import tritonclient.grpc, tritonclient.http

    headers = {"authorization": "Bearer " + os.environ["PILOTLIGHT_API_KEY"]}
    array, found = np.arange(100_000, dtype=np.float32).reshape(-1, 10), {}
    for kind, stock, address in (
        ("http", tritonclient.http, os.environ["HTTP_ADDRESS"]), ("grpc", tritonclient.grpc, os.environ["GRPC_ADDRESS"])
    ):
        client = stock.InferenceServerClient(address)
        x = stock.InferInput("x", list(array.shape), "FP32")
        x.set_data_from_numpy(array)
        answer = client.infer("tensor-models.double", [x], request_id="mine", headers=dict(headers))
        found[kind] = bool(np.array_equal(answer.as_numpy("output"), array * 2))
        found[kind + "_ready"] = client.is_model_ready("tensor-models.double", headers=dict(headers))
        client.close()

    client, answers = tritonclient.grpc.InferenceServerClient(os.environ["GRPC_ADDRESS"]), queue.Queue()
    upto = tritonclient.grpc.InferInput("upto", [1], "INT64")
    upto.set_data_from_numpy(np.array([3]))
    client.start_stream(lambda result, error: answers.put((result, error)), headers=dict(headers))
    client.async_stream_infer("tensor-models.count", [upto])
    chunks = [answers.get(timeout=50) for _ in range(3)]
    found["stream"] = [str(error) if error else result.as_numpy("output").tolist() for result, error in chunks]
    client.stop_stream()
    client.close()
    print(json.dumps(found))
"""


def test_stock_clients_call_functions_as_models(tmp_path: Path) -> None:
    """Large tensors as bytes, and each chunk of a generator as a response."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    with platform(tmp_path, env={"PILOTLIGHT_GRPC_PORT": str(port)}) as running:
        running.deploy(APPS / "tensor_models" / "app.py")
        addresses = {"HTTP_ADDRESS": running.url.removeprefix("http://"), "GRPC_ADDRESS": f"127.0.0.1:{port}"}
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(CLIENT)], env={**os.environ, **running.env, **addresses},
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == {
            "http": True, "grpc": True, "http_ready": True, "grpc_ready": True, "stream": [[0], [1], [2]]
        }  # fmt: skip
