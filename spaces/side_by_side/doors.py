"""Which addresses of the page may be asked for, and a sentence where something is asked for that is not there.

gradio answers under more than this page has use for: a stream for developers that costs time for as long as somebody
listens, states and recordings that it writes to disk when asked. What is not named here does not exist.
"""

from __future__ import annotations

import traceback
from collections.abc import MutableMapping
from typing import Any

from gradio.route_utils import FnIndexInferError
from limits import Application, Message, Receive, Send, refuse

#: gradio's part of the addresses.
_API = "/gradio_api"
_LOOKED_AT = frozenset(
    {"/", "/config", "/favicon.ico", "/health", "/manifest.json", "/pwa_icon", "/robots.txt", "/theme.css"}
    | {f"{_API}/{name}" for name in ("app_id", "info", "login_check", "openapi.json", "startup-events", "theme.css")}
    | {f"{_API}/{name}" for name in ("queue/data", "queue/status", "upload_progress", "user")}
)
_LOOKED_AT_BELOW = (
    "/assets/", "/static/", "/svelte/", f"{_API}/call/", f"{_API}/file=", f"{_API}/heartbeat/",
)  # fmt: skip
_SENT_TO = frozenset(f"{_API}/{name}" for name in ("cancel", "queue/join", "reset", "run/predict", "upload"))
_SENT_TO_BELOW = (f"{_API}/call/",)
#: No address of the page is longer; those of files hold a name and a digest.
_LONGEST = 1000


class Doors:
    """Passes on what the page has a use for, and turns what is raised on the way into an answer."""

    def __init__(self, app: Application) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass a request on, or say that there is nothing here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if not _is_open(scope["method"], scope["path"].removeprefix(scope.get("root_path", ""))):
            await refuse(send, 404, "this page has nothing at this address")
            return
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except (LookupError, FnIndexInferError):  # an event by a name or a number that there is none of
            if begun:
                raise
            await refuse(send, 404, "this page has no such event; /gradio_api/info lists those for programs")
        except Exception:
            if begun:
                raise
            # Who asked learns nothing of how the page is made; who runs it does.
            traceback.print_exc()
            await refuse(send, 500, "something went wrong here; whoever runs this page finds it in the log")


def _is_open(method: str, path: str) -> bool:
    if len(path) > _LONGEST:
        return False
    path = path.rstrip("/") or "/"
    if method == "POST":
        return path in _SENT_TO or path.startswith(_SENT_TO_BELOW)
    return path in _LOOKED_AT or path.startswith(_LOOKED_AT_BELOW)
