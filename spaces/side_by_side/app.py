"""The page: compare replies, judge a conversation or a file, and see how far to trust the answers."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

# Uploads go where nobody else can have put a link, or read: gradio's own place has one name for all users.
if "GRADIO_TEMP_DIR" not in os.environ:
    os.environ["GRADIO_TEMP_DIR"] = tempfile.mkdtemp(prefix="dialeval-uploads-")

import compare
import conversation
import file
import gradio as gr
import trust
from limits import ABOUT, BYTES, KEPT, WAITING
from parts import HERE, html

TITLE = "dialeval: how good is this reply?"
TABS = {"Compare replies": compare, "A conversation": conversation, "A file": file, "Can I trust it?": trust}


def build_page() -> Any:
    """The page as gradio Blocks."""
    with gr.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(600, KEPT)) as page:
        gr.HTML(html("header"))
        with gr.Tabs():
            for name, tab in TABS.items():
                with gr.Tab(name):
                    tab.build()
        gr.HTML(html("footer", about=ABOUT))
    page.queue(default_concurrency_limit=4, max_size=WAITING)
    return page


def launch_options() -> dict[str, Any]:
    """How the page is served: nothing from elsewhere."""
    system = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"]
    theme = gr.themes.Default(primary_hue="blue", font=system, font_mono=["ui-monospace", "Menlo", "monospace"])
    # Darker than gradio's own, whose contrast is below what WCAG asks for.
    theme.set(
        color_accent="*primary_700", button_primary_background_fill="*primary_700",
        button_primary_background_fill_hover="*primary_800", body_text_color_subdued="*neutral_600",
        block_info_text_color="*neutral_600", input_placeholder_color="*neutral_500",
        body_text_color_subdued_dark="*neutral_300", block_info_text_color_dark="*neutral_300",
    )  # fmt: skip
    return {
        "theme": theme,
        "css_paths": Path(HERE) / "style.css",
        "head": '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "max_file_size": BYTES,
        # gradio keeps a copy of the page's state per visit, by default of ten thousand.
        "state_session_capacity": WAITING,
        "footer_links": ["api", "settings"],
        "ssr_mode": False,
    }


page = build_page()

if __name__ == "__main__":
    page.launch(**launch_options())
