"""Take the pictures of the page that the documentation shows: `python tests/space_screenshots.py`.

They are taken from the page as it is, with the embedded checkpoints; look at each one before committing it.
"""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from resources import CHROMIUM
from space_server import ROOT, address

IMAGES = ROOT / "docs" / "images"
_TOPICS = ("your new job", "the trip to Lisbon", "the concert", "your garden", "the football match", "that recipe")
_ASKED = ("How was {}?", "Tell me about {}.", "Are you happy with {}?", "What did your sister say about {}?")
_HUMAN = (
    "Better than I had hoped, to be honest.",
    "A bit tiring, but I would do it again.",
    "She loved it and wants to come next time.",
    "Do not ask, it rained the whole time!",
)
_SYSTEMS = {
    "fluent": (
        "It was wonderful, thanks for asking!",
        "I liked it, but it was rather long.",
        "Not as good as last year.",
    ),
    "evasive": ("I do not know.", "I am not sure.", "Maybe."),
    "off topic": ("The library closes at six on Fridays.", "You can pay by card.", "There is no milk in the fridge."),
}


def rows() -> list[dict[str, Any]]:
    """Replies of three made-up systems to the same contexts."""
    chance = random.Random(0)
    contexts = [asked.format(topic) for topic in _TOPICS for asked in _ASKED]
    return [
        {"context": [context], "response": chance.choice(said), "reference": chance.choice(_HUMAN), "system": system}
        for context in contexts
        for system, said in _SYSTEMS.items()
    ]


def visit(browser: Browser, **options: Any) -> Page:
    """A page with a fresh visitor."""
    page = browser.new_context(device_scale_factor=1, **options).new_page()
    page.set_default_timeout(120_000)
    page.goto(address())
    page.wait_for_selector("#compare")
    return page


def compare(page: Page) -> None:
    """Press the button and wait for what it gives."""
    page.click("#compare")
    page.wait_for_selector("#result table")
    page.wait_for_selector("#chart svg")


def keep(page: Page, name: str, **options: Any) -> None:
    """A picture of few colours, so that it stays small."""
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    page.wait_for_timeout(800)
    path = IMAGES / f"{name}.png"
    page.screenshot(path=path, **options)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(256).save(path, optimize=True)
    print(path.relative_to(ROOT), f"{path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    """All pictures."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    desk = {"width": 1100, "height": 900}
    with sync_playwright() as own:
        browser = own.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = visit(browser, viewport=desk)
        compare(page)
        keep(page, "compare", full_page=True)

        page.get_by_role("tab", name="Score a file").click()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "replies.jsonl"
            file.write_text("".join(json.dumps(row) + "\n" for row in rows()))
            page.set_input_files("#file input[type=file]", file)
            page.wait_for_selector("#file-preview table")
        for box in page.locator("#file-metrics").get_by_role("checkbox").all():
            box.check()
        page.click("#score-file")
        page.wait_for_selector("#file-plots svg")
        keep(page, "file", full_page=True)

        page.get_by_role("tab", name="How far to trust it").click()
        page.click("#benchmark input")
        page.get_by_role("option", name="dailydialog_zhao").click()
        page.wait_for_selector("#plots img[src*=violin_dailydialog_zhao]", state="attached")
        for image in page.locator("#plots img").all():
            image.scroll_into_view_if_needed()
            image.evaluate("image => image.decode()")
        keep(page, "trust", full_page=True)

        page = visit(browser, viewport=desk, color_scheme="dark")
        compare(page)
        keep(page, "dark", full_page=True)

        page = visit(browser, viewport={"width": 360, "height": 780}, is_mobile=True, has_touch=True)
        compare(page)
        keep(page, "phone", full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
