"""The side-by-side page: compare replies, score a file, see how far to trust the numbers."""

from __future__ import annotations

import traceback
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import compare_page
import connections
import dialogue_page
import endpoints
import file_page
import gradio as gr
import health
import store
import trust
from doors import Doors
from limits import LIMITS_TEXT, MAX_FILE_BYTES, MAX_SESSIONS, MAX_WAITING, STORED_SECONDS, BodyLimit, Refused
from pools import FILES, TEXTS
from sessions import Sessions, keep_no_statistics
from starlette.middleware import Middleware
from visitors import Visitors

_HEAD = '<meta name="viewport" content="width=device-width, initial-scale=1">'
#: As many at once as there are workers; who waits is told how many are before.
_TEXTS: dict[str, Any] = {"concurrency_id": "texts", "concurrency_limit": TEXTS.size}
_FILES: dict[str, Any] = {"concurrency_id": "files", "concurrency_limit": FILES.size}


class Page(gr.Blocks):
    """Blocks whose every failure is a sentence: gradio shows `null` where inputs do not fit their components."""

    async def process_api(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """One event."""
        try:
            answer: dict[str, Any] = await super().process_api(*arguments, **options)
        except gr.Error:
            raise
        except Exception:
            # Who asked learns nothing of how the page is made; who runs it does.
            traceback.print_exc()
            raise gr.Error(
                "the page cannot work on this; does it fit what /gradio_api/info asks for?", print_exception=False
            ) from None
        return answer


def build_page() -> Any:
    """The page as gradio Blocks."""
    store.use()
    keep_no_statistics()
    with Page(title="dialeval side by side", analytics_enabled=False, delete_cache=(600, STORED_SECONDS)) as page:
        gr.Markdown("# Dialogue replies, side by side\nHow good is a reply, what does the number mean, and who agrees?")
        with gr.Tabs():
            # Short names: on a phone all of them stand beside each other.
            with gr.Tab("Compare"):
                opened = compare_page.build(_TEXTS)
            with gr.Tab("Conversation"):
                dialogue_page.build(_TEXTS)
            with gr.Tab("File"):
                file_page.build(_FILES)
            with gr.Tab("Trust"):
                trust.build()
            with gr.Tab("API"):
                gr.Markdown(endpoints.DOCUMENTED)
        gr.Markdown(LIMITS_TEXT, elem_classes="limits")
        endpoints.build(_TEXTS)
        opened.from_link(page)
    # Nothing goes past the queue, and so past its limits; gradio leaves that way open where it is no Space.
    page.queue(max_size=MAX_WAITING, api_open=False)
    return page


def launch_options() -> dict[str, Any]:
    """How the page is served: nothing from elsewhere, nothing remembered, nothing larger than stated."""
    folder = trust.results_folder()
    system = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"]
    return {
        "theme": gr.themes.Default(
            primary_hue="blue", font=system, font_mono=["ui-monospace", "Menlo", "Consolas", "monospace"]
        ),
        "css_paths": Path(__file__).with_name("style.css"),
        "head": _HEAD,
        "max_file_size": MAX_FILE_BYTES,
        "allowed_paths": [str(file_page.SAMPLE), *([str(folder.resolve() / "plots")] if folder else [])],
        "app_kwargs": {
            "middleware": [Middleware(Visitors), Middleware(Doors), Middleware(BodyLimit), Middleware(Sessions)],
            "routes": [health.ROUTE],
        },
        "state_session_capacity": MAX_SESSIONS,
        "enable_monitoring": False,
        "footer_links": ["settings"],
        "run_history": False,
        "ssr_mode": False,
    }


def get_ready() -> None:
    """Let a worker load the metrics while the page starts and its first visitor types."""
    with suppress(Refused):
        TEXTS.ask("ready")


page = build_page()

if __name__ == "__main__":
    Thread(target=get_ready, daemon=True).start()
    store.sweep_always()
    connections.use()
    page.launch(**launch_options())
