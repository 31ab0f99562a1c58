"""What gradio keeps of each visitor, and that it goes again.

gradio makes a quarter of a megabyte for every session, so that it knows which boxes a page shows, and keeps ten
thousand of them. A call of an endpoint that names no session is one of its own: a program's memory would be ours.
Beside it stand the messages to that session, some kilobytes even when all of them have been read, and a line about each
of the last ten thousand events, of which a table is made anew after every event.
"""

from __future__ import annotations

import datetime
import os
from collections import Counter, OrderedDict
from collections.abc import MutableMapping
from time import monotonic
from typing import Any

from limits import MAX_SESSIONS, Application, Receive, Send

#: Seconds after its last event when a session that no page has open may go; a page opens its line at once.
_IDLE = 10.0
#: A closed page may be opened again for so long: telephones close what is in the background.
_CLOSED = 3600.0
#: And an answer be fetched.
_UNREAD = 600.0

#: Characters of a session's name, which whoever asks may choose; gradio's own have eleven, or thirty-six.
_LONGEST = 100

_HEARTBEAT = "/heartbeat/"
#: Where a program fetches its answer; the last part names the event, and the session if the call named none.
_CALL = "/call/"


def keep_no_statistics() -> None:
    """Ask gradio, before it makes its queue, for the least record of past events, and for no table of them."""
    os.environ.setdefault("GRADIO_ANALYTICS_MAX_EVENTS", "1")
    os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", str(10**9))


class Sessions:
    """Knows which pages are open, by the line that each keeps, and drops what belongs to no page."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._open: Counter[str] = Counter()
        self._closed: OrderedDict[str, float] = OrderedDict()
        self._dropped: OrderedDict[str, float] = OrderedDict()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass every request on."""
        path = scope["path"] if scope["type"] == "http" else ""
        if _HEARTBEAT in path:
            session = path.partition(_HEARTBEAT)[2]
            self._open[session] += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._open[session] -= 1
                if not self._open[session]:
                    del self._open[session]
                    self._closed.pop(session, None)
                    self._closed[session] = monotonic()
                    while len(self._closed) > MAX_SESSIONS:
                        self._closed.popitem(last=False)
            return
        if path and scope["method"] == "POST":
            self.drop_idle(scope["app"])
        try:
            await self._app(scope, receive, send)
        finally:
            if _CALL in path and scope["method"] == "GET":
                _drop_answered(scope["app"], path.rpartition("/")[2])

    def drop_idle(self, gradio_app: Any) -> None:
        """Forget the sessions of calls that are done, and of pages that were closed long ago."""
        holder, queue = gradio_app.state_holder, gradio_app.get_blocks()._queue
        _forget_before(self._closed, _CLOSED)
        busy = {event.session_hash for event in list(queue.event_ids_to_events.values())}
        now = datetime.datetime.now()
        for session in list(holder.session_data):
            used = holder.time_last_used.get(session, now)
            is_kept = session in self._open or session in self._closed or session in busy
            # A name of megabytes would be kept with whatever is kept of the session.
            is_ours = len(session) <= _LONGEST
            if not is_kept and ((now - used).total_seconds() > _IDLE or not is_ours):
                holder.session_data.pop(session, None)
                holder.time_last_used.pop(session, None)
                self._dropped.pop(session, None)
                if is_ours:
                    self._dropped[session] = monotonic()
                else:
                    _drop_messages(queue, session)
        late = _forget_before(self._dropped, _UNREAD)
        while len(self._dropped) > MAX_SESSIONS:
            late.append(self._dropped.popitem(last=False)[0])
        for session in late:
            _drop_messages(queue, session)


def _drop_answered(gradio_app: Any, session: str) -> None:
    """Forget a session that was one call, once its answer has been read; nobody can ask for it again."""
    queue = gradio_app.get_blocks()._queue
    if queue.pending_event_ids_session.get(session) == set():
        _drop_messages(queue, session)
        gradio_app.state_holder.session_data.pop(session, None)
        gradio_app.state_holder.time_last_used.pop(session, None)


def _drop_messages(queue: Any, session: str) -> None:
    queue.pending_messages_per_session.pop(session, None)
    queue.pending_event_ids_session.pop(session, None)


def _forget_before(since: OrderedDict[str, float], seconds: float) -> list[str]:
    """Take out what was put in so long ago; the oldest stands first."""
    gone = []
    for session, at in since.items():
        if monotonic() - at < seconds:
            break
        gone.append(session)
    for session in gone:
        del since[session]
    return gone
