"""Take the pictures of the page that the documentation shows: `make screenshots`.

They are taken from the page as it is, with the embedded checkpoints; look at each one before committing it. Beside them
signatures.json says of what each shows the scores, which a test compares with the checkpoints that ship.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from resources import CHROMIUM, PATIENCE, RESOURCES
from space_server import ROOT, address

sys.path.insert(0, str(ROOT / "examples"))
from sample import ANSWERS, CONTEXTS, PERSON, REPEATS

IMAGES = ROOT / "docs" / "images"
SIGNATURES = IMAGES / "signatures.json"
#: The benchmark that the picture of the trust page shows.
SHOWN = "dailydialog_zhao"


def rows() -> list[dict[str, Any]]:
    """The demo's two systems, one that answers and one that repeats a few phrases."""
    systems = {"answers": ANSWERS, "repeats": REPEATS}
    return [
        {"context": context, "response": reply, "reference": person, "system": system}
        for system, replies in systems.items()
        for context, reply, person in zip(CONTEXTS, replies, PERSON, strict=True)
    ]


def visit(browser: Browser, **options: Any) -> Page:
    """A page with a fresh visitor."""
    page = browser.new_context(device_scale_factor=1, **options).new_page()
    page.set_default_timeout(1000 * PATIENCE)
    page.goto(address())
    page.wait_for_selector("#compare")
    return page


def compare(page: Page) -> list[str]:
    """Press the button and wait for what it gives, signatures last."""
    page.click("#compare")
    page.wait_for_selector("#result table")
    page.wait_for_selector("#chart svg")
    return signatures(page, "#signature")


def signatures(page: Page, where: str) -> list[str]:
    """Those in a box, once they stand there."""
    page.wait_for_function("where => document.querySelector(`${where} textarea`)?.value", arg=where)
    return page.input_value(f"{where} textarea").splitlines()


def measured_signatures() -> list[str]:
    """Of the metrics in the committed results of the benchmark that the trust page is shown with."""
    lines = (ROOT / "results" / "agreement.jsonl").read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["benchmark"] == SHOWN]
    return sorted({row["metric_signature"] for row in rows})


def checkpoints(message: list[str]) -> set[str]:
    """The checkpoints that signatures name, as NAME@DIGEST."""
    return {name for signature in message for name in re.findall(r"checkpoint:([\w.-]+@\w+)", signature)}


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


def states(folder: Path) -> None:
    """A picture of every state that a designer's eye has to pass over, on a desk, in the dark and on a phone."""
    folder.mkdir(parents=True, exist_ok=True)
    looks: dict[str, dict[str, Any]] = {
        "desk": {"viewport": {"width": 1200, "height": 850}},
        "dark": {"viewport": {"width": 1200, "height": 850}, "color_scheme": "dark"},
        "phone": {"viewport": {"width": 360, "height": 780}, "is_mobile": True, "has_touch": True},
    }
    with sync_playwright() as own:
        browser = own.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for look, options in looks.items():

            def snap(page: Page, state: str, look: str = look, **more: Any) -> None:
                page.wait_for_timeout(800)
                page.screenshot(path=folder / f"{look}-{state}.png", **more)
                print(f"{look}-{state}.png")

            page = visit(browser, **options)
            snap(page, "empty")
            page.click("#compare")
            snap(page, "busy")
            page.wait_for_selector("#chart svg")
            snap(page, "answer")
            snap(page, "answer-whole", full_page=True)
            page.fill("#reply-3 textarea", "")
            page.click("#compare")
            page.wait_for_selector("#result .problem")
            snap(page, "error")
            page.click("#share")
            page.wait_for_function("document.querySelector('#link textarea').value.startsWith('http')")
            snap(page, "link")
            for place in (3, 2):
                page.click(f"#remove-reply-{place}")
                page.wait_for_selector(f"#reply-{place}", state="hidden")
            compare(page)
            snap(page, "one-reply")
            for place in range(2, 7):
                page.click("#add-reply")
                page.fill(f"#reply-{place} textarea", "A reply that goes on and on, as some do. " * place * place)
            compare(page)
            snap(page, "six-long-replies", full_page=True)
            for tab in ("Conversation", "File", "Trust", "API"):
                page.get_by_role("tab", name=tab, exact=True).click()
                snap(page, f"tab-{tab.lower()}", full_page=True)
        browser.close()


def main() -> None:
    """All pictures, then what they show; or with a folder named, every state of the page into that."""
    if CHROMIUM is None:
        sys.exit(RESOURCES["browser"].absent)
    if len(sys.argv) > 1:
        states(Path(sys.argv[1]))
        return
    IMAGES.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[str]] = {}
    desk = {"width": 1100, "height": 900}
    with sync_playwright() as own:
        browser = own.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = visit(browser, viewport=desk)
        found["compare"] = compare(page)
        keep(page, "compare", full_page=True)

        page.get_by_role("tab", name="File", exact=True).click()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "replies.jsonl"
            file.write_text("".join(json.dumps(row) + "\n" for row in rows()))
            page.set_input_files("#file input[type=file]", file)
            page.wait_for_selector("#file-preview table")
        for box in page.locator("#file-metrics").get_by_role("checkbox").all():
            box.check()
        page.click("#score-file")
        page.wait_for_selector("#file-plots svg")
        found["file"] = signatures(page, "#file-signature")
        keep(page, "file", full_page=True)

        page.get_by_role("tab", name="Trust", exact=True).click()
        page.get_by_role("button", name="Every benchmark").click()
        page.click("#benchmark input")
        page.get_by_role("option", name=SHOWN).click()
        page.wait_for_selector(f"#plots img[src*=violin_{SHOWN}]", state="attached")
        for image in page.locator("#plots img").all():
            image.scroll_into_view_if_needed()
            image.evaluate("image => image.decode()")
        found["trust"] = measured_signatures()
        keep(page, "trust", full_page=True)

        page = visit(browser, viewport=desk, color_scheme="dark")
        found["dark"] = compare(page)
        keep(page, "dark", full_page=True)

        page = visit(browser, viewport={"width": 360, "height": 780}, is_mobile=True, has_touch=True)
        found["phone"] = compare(page)
        keep(page, "phone", full_page=True)
        browser.close()
    SIGNATURES.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
