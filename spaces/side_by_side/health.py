"""Where whoever runs the page asks whether it is well; no visitor's limit counts it."""

from __future__ import annotations

import asyncio

from limits import Refused
from pools import PREVIEWS
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def _health(request: Request) -> JSONResponse:
    """Well means that a worker can be started and answers, not only that this process does."""
    try:
        await asyncio.to_thread(PREVIEWS.ask, "well")
    except (Refused, OSError) as error:
        return JSONResponse({"status": "ill", "problem": str(error)}, 503)
    return JSONResponse({"status": "ok"})


ROUTE = Route("/health", _health)
