"""The side-by-side page in a real browser: what a visitor types, uploads, reads and downloads."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gradio")
pytest.importorskip("playwright.sync_api")

from playwright.sync_api import expect, sync_playwright

import dialeval
from dialeval.exchange import Exchange
from resources import CHROMIUM, PATIENCE
from space_server import address

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.encoder,
]

expect.set_options(timeout=1000 * PATIENCE)
TURNS = ["Shall we go to the lake tomorrow?", "The forecast says that it will rain."]
REPLIES = ["The exam will take three hours.", "Then let us go to the museum instead."]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as own:
        browser = own.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    """Open the page as a new visitor; no request may leave the machine, and no script may fail."""
    contexts, requests, errors = [], [], []

    def open_page(tab: str = "Compare", **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address())
        page.wait_for_selector("#compare")
        if tab != "Compare":
            page.get_by_role("tab", name=tab, exact=True).click()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert len(requests) > 5
    assert [url for url in requests if not url.startswith((f"{address()}/", "data:", "blob:"))] == []
    assert errors == []


def write(page: Any, kind: str, texts: list[str]) -> None:
    """Make the boxes of a kind hold just these texts."""
    boxes = page.locator(f"[id^={kind}-] textarea")
    while (shown := boxes.count()) != len(texts):
        if shown < len(texts):
            page.click(f"#add-{kind}")
        else:
            page.click(f"#remove-{kind}-{shown}")
        page.wait_for_function(
            "([kind, before]) => document.querySelectorAll(`[id^=${kind}-] textarea`).length !== before",
            arg=[kind, shown],
        )
    for place, text in enumerate(texts, start=1):
        page.fill(f"#{kind}-{place} textarea", text)


def compared(page: Any) -> dict[str, list[float]]:
    """Press the button, and read the table: the native values of each metric."""
    page.click("#compare")
    page.wait_for_selector("#result table")
    return table_of(page)


def table_of(page: Any) -> dict[str, list[float]]:
    rows = page.locator("#result tbody tr").all()
    return {
        row.locator("th").evaluate("cell => cell.firstChild.textContent").split()[0].lower(): [
            float(cell.inner_text().replace("−", "-")) for cell in row.locator("td > div > span:first-child").all()
        ]
        for row in rows
    }


def test_a_typed_conversation_is_judged_as_the_library_does(visit: Any) -> None:
    page = visit()
    write(page, "turn", TURNS)
    write(page, "reply", REPLIES)
    found = compared(page)
    scores = dialeval.load("density").score(REPLIES, [TURNS] * 2)
    assert found["density"] == pytest.approx(scores.values, abs=6e-4)
    assert scores.values[1] > scores.values[0]
    assert "Best first: Reply 2 › Reply 1." in page.inner_text("#result")
    assert "best" in page.locator("#result tbody tr td").nth(1).inner_text()
    assert "best" not in page.locator("#result tbody tr td").nth(0).inner_text()
    share = dialeval.load("density").rescale(scores.values, "human_percentile")[1]
    assert f"{share:.0%} of human replies score lower than Reply 2" in page.inner_text("#result")
    assert "Higher is better (without bounds)" in page.inner_text("#result")
    assert str(scores.signature) in page.input_value("#signature textarea").splitlines()
    assert page.locator("#chart svg").is_visible()


def test_a_whole_conversation_is_judged(visit: Any) -> None:
    page = visit("Conversation")
    page.fill("#dialogue-lines textarea", "\n".join([*TURNS, "What? You make no sense."]))
    page.click("#judge-dialogue")
    expect(page.locator("#dialogue-result")).to_contain_text("Why")
    scores = dialeval.load("judge").score_dialogues([[*TURNS, "What? You make no sense."]])
    shown = page.inner_text("#dialogue-result")
    assert scores.explain(0) in shown
    assert f"{scores.values[0]:.3f}" in shown
    assert shown.count("The judged side") == 1
    page.get_by_label("the side that speaks first").check()
    page.click("#judge-dialogue")
    expect(page.locator("#dialogue-result li:has-text('The judged side')")).to_have_count(2)


def test_turns_are_added_removed_and_speakers_swapped_and_examples_loaded(visit: Any) -> None:
    page = visit()
    write(page, "turn", ["one", "two", "three"])
    page.click("#remove-turn-2")
    page.wait_for_function("document.querySelectorAll('[id^=turn-] textarea').length === 2")
    assert [box.input_value() for box in page.locator("[id^=turn-] textarea").all()] == ["one", "three"]
    assert page.locator("#turn-1").inner_text().strip() == "1. A says"
    page.click("#swap")
    expect(page.locator("#turn-1")).to_contain_text("1. B says")
    expect(page.locator("#turn-2")).to_contain_text("2. A says")
    page.click("#example input")
    page.get_by_role("option", name="A concert").click()
    expect(page.locator("#turn-1 textarea")).to_have_value("How was the concert last night?")
    assert page.locator("[id^=turn-] textarea").count() == 1
    assert page.locator("[id^=reply-] textarea").count() == 4
    assert "repeats a word" in page.inner_text("#lesson")
    for place in (5, 6):
        page.click("#add-reply")
        expect(page.locator("[id^=reply-] textarea")).to_have_count(place)
    expect(page.locator("#add-reply")).to_be_disabled()  # there is no room for a seventh
    page.click("#remove-reply-1")
    expect(page.locator("#add-reply")).to_be_enabled()
    assert page.input_value("#reply-1 textarea") == "It was good."


def test_the_answer_and_every_error_are_seen_where_one_looks(visit: Any) -> None:
    page = visit(viewport={"width": 1200, "height": 800})
    assert not page.locator("#signature").is_visible()  # no box without anything in it
    page.locator("#metrics").scroll_into_view_if_needed()
    page.click("#compare")  # which stays in view
    page.wait_for_selector("#result table")
    expect(page.locator("#result .answer")).to_be_in_viewport()
    expect(page.locator("#compare")).to_have_text("Compare the replies")
    write(page, "reply", [""])
    page.click("#compare")
    expect(page.locator("#result .problem")).to_contain_text("reply 1 is empty")
    expect(page.locator("#result .problem")).to_be_in_viewport()
    phone = visit(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    phone.click("#compare")
    phone.wait_for_selector("#result table")
    expect(phone.locator("#result .answer")).to_be_in_viewport()


def test_a_link_holds_what_was_typed(visit: Any, browser: Any) -> None:
    page = visit()
    write(page, "turn", TURNS)
    write(page, "reply", [*REPLIES, "Grüße — “é” & <b>?"])
    page.locator("#metrics").get_by_role("checkbox", name="DEB").uncheck()
    page.click("#share")
    page.wait_for_function("document.querySelector('#link textarea, #link input').value.startsWith('http')")
    link = page.locator("#link textarea, #link input").input_value()
    page.goto(link)
    expect(page.locator("#reply-3 textarea")).to_have_value("Grüße — “é” & <b>?")
    assert [box.input_value() for box in page.locator("[id^=turn-] textarea").all()] == TURNS
    expect(page.locator("#metrics").get_by_role("checkbox", name="DEB")).not_to_be_checked()
    page.goto(link[:-9] + "damaged")
    expect(page.locator("#result .problem")).to_contain_text("this link is damaged")


def test_the_keyboard_is_enough(visit: Any) -> None:
    page = visit()
    page.focus("#reference textarea")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "compare":
            break
    assert page.evaluate("document.activeElement.id") == "compare"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    page.wait_for_selector("#result table")


def test_hostile_text_is_escaped_or_refused(visit: Any) -> None:
    page = visit()
    hostile = "<script>window.stolen = 1</script><img src=x onerror='window.stolen = 2'>${alert(1)} {{value}}\x07"
    write(page, "turn", [hostile])
    write(page, "reply", [hostile, "\u202eright to left", "</table><h1>gone</h1>"])
    compared(page)
    assert page.evaluate("window.stolen") is None
    assert page.locator("#result img, #result script, #result h1").count() == 0
    assert "<script>window.stolen = 1</script>" in page.inner_text("#result thead")
    assert "control characters were taken out" in page.inner_text("#result .notes:not(.reasons)")
    write(page, "reply", ["fine", ""])
    page.click("#compare")
    expect(page.locator("#result .problem")).to_contain_text("reply 2 is empty; write it, or remove it")
    assert page.input_value("#signature textarea") == ""
    # Ten megabytes, as from a clipboard.
    page.evaluate(
        """() => { const box = document.querySelector("#reply-2 textarea"); box.value = "x".repeat(10_000_000);
        box.dispatchEvent(new Event("input", {bubbles: true})) }"""
    )
    page.click("#compare")
    expect(page.locator("#result .problem")).to_contain_text(
        "reply 2 has 10,000,000 characters; this page takes 5,000, so shorten it"
    )


def rows_of(name: str, count: int) -> list[dict[str, Any]]:
    return [
        {
            "context": [f"Does {name} like the number {at}?"],
            "response": f"{name} likes it, and {at + 1} as well.",
            "reference": "I never asked, but I would think so.",
            "system": f"={name}" if at % 2 else "<b>plain</b>",
            "id": f"+{name}-{at}",
        }
        for at in range(count)
    ]


def uploaded(page: Any, path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page.set_input_files("#file input[type=file]", path)


def choose(page: Any, *names: str) -> None:
    """Check these metrics of the file tab and no other."""
    for name in ("JUDGE", "DENSITY", "DEB", "QuantiDCE", "CMN", "FBD", "PRD"):
        page.locator("#file-metrics").get_by_role("checkbox", name=re.compile(f"^{name} [↑↓]")).set_checked(
            name in names
        )


def downloaded(page: Any, form: str) -> str:
    with page.expect_download() as download:
        page.click(f"#download-{form}")
    return str(Path(download.value.path()).read_text(encoding="utf-8"))


def test_two_visitors_score_files_and_download_their_own_results(visit: Any, tmp_path: Path) -> None:
    visitors = {name: rows_of(name, 72) for name in ("Anna", "Boris")}
    pages = {name: visit("File") for name in visitors}
    for name, page in pages.items():
        uploaded(page, tmp_path / name / "rows.jsonl", visitors[name])  # files of the same name
        expect(page.locator("#file-preview")).to_contain_text("72 rows; the first 5")
        assert "<b>plain</b>" in page.inner_text("#file-preview")
        choose(page, "DENSITY")
        page.evaluate(
            """() => { window.steps = []; new MutationObserver(() => {
            const told = document.querySelector("#file-result").innerText.match(/(\\d+)\\/72 rows/);
            if (told) window.steps.push(Number(told[1])) }).observe(document.body,
            {subtree: true, childList: true, characterData: true}) }"""
        )
    for page in pages.values():
        page.click("#score-file")
    for name, page in pages.items():
        page.wait_for_selector("#file-result table")
        rows = visitors[name]
        steps = page.evaluate("window.steps")
        assert {32, 64, 72} & set(steps)
        assert steps == sorted(steps)
        scores = dialeval.load("density").score([row["response"] for row in rows], [row["context"] for row in rows])
        found = [json.loads(line) for line in downloaded(page, "jsonl").splitlines()]
        assert [row["id"] for row in found] == [row["id"] for row in rows]
        assert [row["density"] for row in found] == pytest.approx(scores.values, rel=1e-5)
        table = list(csv.DictReader(downloaded(page, "csv").splitlines()))
        assert [row["id"] for row in table] == [f"'+{name}-{at}" for at in range(72)]
        assert table[1]["system"] == f"'={name}"
        assert [float(row["density"]) for row in table] == pytest.approx(scores.values, rel=1e-5)
        assert json.loads(downloaded(page, "json"))["metrics"]["density"]["signature"] == str(scores.signature)
        shown = page.inner_text("#file-result")
        assert "72 rows scored" in shown
        assert f"{scores.values[::2].mean():.3f}".replace("-", "−") in shown
        assert "<b>plain</b>" in shown
        assert page.locator("#file-plots svg").count() == 1
        assert page.input_value("#file-signature textarea") == str(scores.signature)


def test_sets_are_compared_with_a_curve(visit: Any, tmp_path: Path) -> None:
    page = visit("File")
    rows = rows_of("Anna", 12)
    uploaded(page, tmp_path / "rows.jsonl", rows)
    choose(page, "FBD", "PRD")
    page.click("#score-file")
    page.wait_for_selector("#file-result table")
    shown = page.inner_text("#file-result")
    exchanges = [Exchange((*row["context"],), row["response"], (row["reference"],), (), row["system"]) for row in rows]
    for name in ("fbd", "prd"):
        for value in dialeval.load(name).score_exchanges(exchanges).values:
            assert f"{value:.3f}" in shown
    assert "fewer rows than the 384 dimensions" in shown
    assert "precision: share of its replies" in page.locator("#file-plots svg").inner_html()
    table = list(csv.DictReader(downloaded(page, "csv").splitlines()))
    assert [row["system"] for row in table] == ["<b>plain</b>", "'=Anna"]


def test_a_bad_row_is_named(visit: Any, tmp_path: Path) -> None:
    page = visit("File")
    bad = [*rows_of("Anna", 3), {"context": ["Hi!"], "response": None}]
    uploaded(page, tmp_path / "bad.jsonl", bad)
    problem = page.locator("#file-preview .problem")
    expect(problem).to_have_text("row 3 (bad.jsonl, line 4): response is None; pass a string")
    page.click("#score-file")
    expect(page.locator("#file-result .problem")).to_contain_text("row 3 (bad.jsonl, line 4)")
    assert page.locator("#download-csv").is_disabled()


def test_the_trust_tab_shows_the_committed_results(visit: Any) -> None:
    import trust

    page = visit("Trust")
    assert "Use " in page.inner_text("#trust-opening")
    assert page.locator("#trust-opening svg").is_visible()
    expect(page.locator("#board")).not_to_be_visible()
    page.get_by_role("button", name="Every benchmark").click()
    page.wait_for_selector("#board table")
    rows = [row for row in trust.results() if row["statistic"] == "spearman"]
    assert page.locator("#board tbody tr").count() == len(rows)
    chosen = rows[-1]
    page.click("#benchmark input")
    page.get_by_role("option", name=chosen["benchmark"], exact=True).click()
    kept = [row for row in rows if row["benchmark"] == chosen["benchmark"]]
    expect(page.locator("#board tbody tr")).to_have_count(len(kept))
    page.click("#level input")
    page.get_by_role("option", name=chosen["level"], exact=True).click()
    kept = [row for row in kept if row["level"] == chosen["level"]]
    expect(page.locator("#board tbody tr")).to_have_count(len(kept))
    assert f"{chosen['value']:.3f}".replace("-", "−") in page.inner_text("#board")
    assert "contaminated" in page.get_by_role("tabpanel").inner_text()
    others = page.locator(f"#plots img:not([src*='{chosen['benchmark']}'])")
    expect(others).to_have_count(0)
    assert page.locator("#plots img").count() > 1
    for image in page.locator("#plots img").all():
        image.scroll_into_view_if_needed()
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 300


def test_a_phone_needs_no_sideways_scrolling(visit: Any, tmp_path: Path) -> None:
    page = visit(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    compared(page)
    # What stands beside each other on a desk stands below each other here, and nothing is cut.
    edges = page.locator("#result td").evaluate_all("cells => cells.map(cell => cell.getBoundingClientRect().right)")
    assert max(edges) <= 360
    for tab in ("Compare", "Conversation", "File", "Trust", "API"):
        page.get_by_role("tab", name=tab, exact=True).click()  # none hides behind a button
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, tab
        if tab == "File":
            uploaded(page, tmp_path / "rows.jsonl", rows_of("A-word-without-any-place-to-break-it" * 3, 2))
            page.wait_for_selector("#file-preview table")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360


def luminance(page: Any, selector: str, colour: str) -> float:
    """How bright a computed colour is, from 0 to 1."""
    shown = page.locator(selector).first.evaluate(f"cell => getComputedStyle(cell).{colour}")
    red, green, blue = (float(part) / 255 for part in shown.split("(")[1].rstrip(")").split(",")[:3])
    linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue))
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_can_be_read(visit: Any, scheme: str) -> None:
    page = visit(color_scheme=scheme)
    compared(page)
    paper = luminance(page, "body", "backgroundColor")
    assert (paper < 0.1) if scheme == "dark" else (paper > 0.9)
    for selector, colour in (("#result td", "color"), ("#result .meaning li", "color"), ("#chart svg text", "fill")):
        bright, dim = sorted((paper, luminance(page, selector, colour)), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) > 7, selector
