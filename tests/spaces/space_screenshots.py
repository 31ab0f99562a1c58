"""Take the pictures of the page that the documentation shows: `make screenshots`. Look at each before committing it."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from resources import CHROMIUM, PATIENCE
from shell import write_rows
from space_server import ROOT, address

sys.path.insert(0, str(ROOT / "examples"))
from sample import ANSWERS, CONTEXTS, REPEATS

IMAGES = ROOT / "docs" / "images"


def main() -> None:
    """The first tab as it opens, and a file of the demo's two systems."""
    with sync_playwright() as own, tempfile.TemporaryDirectory() as folder:
        browser = own.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(address())
        page.wait_for_selector("#answer .card")
        page.screenshot(path=IMAGES / "compare.png")
        rows = (
            {"context": context, "response": reply, "system": system}
            for system, replies in {"answers": ANSWERS, "repeats": REPEATS}.items()
            for context, reply in zip(CONTEXTS, replies, strict=True)
        )
        file = write_rows(Path(folder) / "two_systems.jsonl", rows)
        page.get_by_role("tab", name="A file").click()
        page.set_input_files("#upload input[type=file]", file)
        page.wait_for_selector("#preview .record")
        page.click("#judge-file")
        page.wait_for_selector("#file-answer .sentence")
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_timeout(500)
        page.screenshot(path=IMAGES / "file.png")
        browser.close()


if __name__ == "__main__":
    main()
