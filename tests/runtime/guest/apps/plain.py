"""A tenant's plain functions: what a guest is given to run."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import datetime
import enum
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from pilotlight import App

app = App("plain")


@app.gpu_function
def nothing() -> None:
    """No work at all."""


@app.gpu_function
async def nothing_async() -> None:
    """No work at all, in an event loop."""
