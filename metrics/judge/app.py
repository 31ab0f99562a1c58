"""The page of the judge's module; dialeval builds it, so that all modules' pages look alike."""

from pathlib import Path

import gradio as gr

from dialeval.module_page import build_page

page = build_page(gr, "judge", Path(__file__).with_name("README.md"))

if __name__ == "__main__":
    page.launch()
