"""The server that `overhead` compares with: one bare Starlette/uvicorn process that echoes, and nothing else."""

from __future__ import annotations

import argparse

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class Echo(msgspec.Struct):
    """The same request that the platform's callers send."""

    input: dict[str, str]


_decoder = msgspec.json.Decoder(Echo)
_encoder = msgspec.json.Encoder()


async def echo(request: Request) -> Response:
    """Answer what was sent."""
    body = _decoder.decode(await request.body())
    return Response(_encoder.encode({"output": body.input["text"]}), media_type="application/json")


def main() -> None:
    """Serve on loopback until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    app = Starlette(routes=[Route("/echo", echo, methods=["POST"])])
    uvicorn.run(
        app, host="127.0.0.1", port=parser.parse_args().port, loop="uvloop", http="httptools", access_log=False,
        log_level="warning",
    )  # fmt: skip


if __name__ == "__main__":
    main()
