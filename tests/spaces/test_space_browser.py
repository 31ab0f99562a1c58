"""The page in a real browser: each tab, wide and narrow, light and dark, by keyboard, with axe-core's rules."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from shell import write_rows

pytest.importorskip("gradio")
pytest.importorskip("playwright.sync_api")
pytest.importorskip("axe_playwright_python")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

import dialeval
from resources import CHROMIUM
from space_server import address

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.encoder]

#: Milliseconds for one step, on a busy machine; a step that hangs should not hold up all tests.
STEP = 120_000
expect.set_options(timeout=STEP)

TABS = ["Compare replies", "A conversation", "A file", "Can I trust it?"]
CONTEXT = ["How was your trip?", "Great, but I lost my suitcase on the way back."]
GOOD, BAD = "Oh no! Did the airline find it?", "The library closes at six on Fridays."


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

    def open_page(tab: str = TABS[0], *, width: int = 1280, theme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(STEP)
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{address()}/?__theme={theme}")
        page.wait_for_selector("#answer .card")
        if tab != TABS[0]:
            page.get_by_role("tab", name=tab).click()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [url for url in requests if not url.startswith((f"{address()}/", "data:", "blob:"))] == []
    assert errors == []


def rows(path: Path, replies: dict[str, list[str]]) -> str:
    lines = [
        {"user_msg": f"Number {at}: {CONTEXT[0]}", "bot_reply": reply, "model": system}
        for system, said in replies.items()
        for at, reply in enumerate(said)
    ]
    write_rows(path, lines)
    return str(path)


def upload(page: Any, *paths: str) -> None:
    page.set_input_files("#upload input[type=file]", list(paths))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_page_and_axe_finds_nothing(visit: Any, width: int, theme: str) -> None:
    page = visit(width=width, theme=theme)
    problems = {}
    for tab in TABS:
        page.get_by_role("tab", name=tab).click()
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, tab
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa"]}).response["violations"]
        problems[tab] = [(one["id"], [node["target"] for node in one["nodes"]][:3]) for one in found]
    assert problems == {tab: [] for tab in TABS}


def test_the_page_opens_with_an_answer_and_compares_what_is_typed(visit: Any) -> None:
    page = visit()
    judge = dialeval.load("judge", device="cpu", dtype="float32")
    assert page.locator("#answer .sentence").inner_text().startswith("Reply A is clearly best")
    page.get_by_role("textbox", name="Reply A").fill(BAD)
    page.get_by_role("textbox", name="Reply B").fill(GOOD)
    page.get_by_role("textbox", name="Reply C").fill("")
    page.click("#compare")
    expect(page.locator("#answer .sentence")).to_contain_text("Reply B")
    cards = page.locator("#answer .card")
    assert cards.count() == 2
    value = judge.score([GOOD], [CONTEXT])
    assert cards.first.locator(".value").inner_text() == f"{value[0]:.2f}"
    assert cards.first.locator(".reason").inner_text() == value.explain(0)
    # A turn more, and the same replies answer something else.
    page.get_by_role("textbox", name="Add a turn").fill("Where do you borrow books?")
    page.keyboard.press("Enter")
    expect(page.locator("#context")).to_contain_text("borrow books")
    page.click("#compare")
    expect(page.locator("#answer .sentence")).to_contain_text("Reply A")


def test_a_wrong_field_is_named_and_gets_the_focus_and_what_was_typed_stays(visit: Any) -> None:
    page = visit()
    for letter in "BC":
        page.get_by_role("textbox", name=f"Reply {letter}").fill("")
    page.click("#compare")
    expect(page.locator("#answer .note")).to_be_visible()
    expect(page.get_by_role("textbox", name="Reply B")).to_be_focused()
    assert page.get_by_role("textbox", name="Reply A").input_value() == GOOD
    page.get_by_role("textbox", name="Reply B").fill("x" * 5000)
    page.click("#compare")
    expect(page.locator("#answer .note")).to_contain_text("5,000")


def test_all_by_keyboard(visit: Any) -> None:
    page = visit()
    page.get_by_role("textbox", name="Reply A").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("It will rain.")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "compare":
            break
    page.keyboard.press("Enter")
    expect(page.locator("#answer")).to_contain_text("It will rain.")


def test_other_metrics_are_one_click_further(visit: Any) -> None:
    page = visit()
    page.get_by_role("button", name="All other metrics").click()
    expect(page.locator("#percentiles .card")).to_have_count(3)
    assert "%" in page.locator("#percentiles dd").first.inner_text()
    # CMN asks for references, and stands there when there are some.
    page.get_by_role("button", name="More: facts, next turn, references").click()
    page.get_by_role("textbox", name="Good replies that people wrote").fill("I hope that they find it.\nWhat a pity!")
    page.click("#compare")
    expect(page.locator("#percentiles .card")).to_have_count(0)
    page.get_by_role("button", name="All other metrics").click()
    page.get_by_role("button", name="All other metrics").click()
    expect(page.locator("#percentiles .card")).to_have_count(4)
    expect(page.locator("#percentiles")).to_contain_text("CMN")


def test_a_conversation(visit: Any) -> None:
    page = visit(TABS[1])
    talk = f"User: {CONTEXT[0]}\nBot: Great!\nUser: Do you have a pet?\nBot: {BAD}\nUser: What?"
    transcript = page.locator("#transcript textarea")
    expect(transcript).not_to_be_empty()  # the page's own example, which would come over what is typed before it
    transcript.fill(talk)
    transcript.blur()
    page.wait_for_timeout(300)
    page.click("#judge-conversation")
    expect(page.locator("#conversation-answer .turn")).to_have_count(5)
    expect(page.locator("#conversation-answer .judged")).to_have_count(2)
    expect(page.locator("#conversation-answer .judged.weak .reason")).to_have_count(1)
    page.get_by_label("The other side").check()
    page.click("#judge-conversation")
    expect(page.locator("#conversation-answer .judged .who").first).to_have_text("user")
    page.locator("#transcript textarea").fill("only one line")
    page.click("#judge-conversation")
    expect(page.locator("#conversation-answer .note")).to_be_visible()
    assert page.locator("#transcript textarea").input_value() == "only one line"


def test_a_file_of_two_systems(visit: Any, tmp_path: Path) -> None:
    page = visit(TABS[2])
    good = [f"It was lovely, number {at} had a view of the lake." for at in range(40)]
    upload(page, rows(tmp_path / "two.jsonl", {"new": good, "old": [BAD] * 40}))
    expect(page.locator("#preview .record")).to_have_count(3)
    expect(page.locator("#column-response input")).to_have_value("bot_reply")
    page.get_by_role("textbox", name="Baseline").fill("old")
    page.click("#judge-file")
    expect(page.locator("#file-answer .sentence")).to_have_text("new is best.")
    expect(page.locator("#file-answer .reason").first).to_contain_text("passed")
    assert page.locator("#file-answer .head ~ .card").count() == 10
    with page.expect_download() as waiting:
        page.locator("#downloads a[download]").last.click()
    frame = pd.read_parquet(waiting.value.path())
    assert len(frame) == 80
    row = frame[frame.response == good[0]].iloc[0]
    judge = dialeval.load("judge", device="cpu", dtype="float32")
    assert row["judge"] == pytest.approx(judge.score([row.response], [list(row.context)])[0], abs=1e-4)


def test_systems_that_no_test_tells_apart_are_not_called_better(visit: Any, tmp_path: Path) -> None:
    page = visit(TABS[2])
    same = [GOOD if at % 2 else BAD for at in range(40)]
    upload(page, rows(tmp_path / "one.jsonl", {"a": same}), rows(tmp_path / "other.jsonl", {"b": same}))
    expect(page.locator("#preview .record")).to_have_count(3)
    page.click("#judge-file")
    expect(page.locator("#file-answer .sentence")).to_contain_text("cannot be told apart")
    weakest = page.locator("#file-answer .head ~ .card .small").first.inner_text()
    assert weakest.partition(":")[0] in ("one", "other")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", b""),
        ("binary.jsonl", bytes(range(256)) * 20),
        ("wrong.parquet", b"PAR1 and nothing"),
        ("notes.pdf", b"%PDF-1.7"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_without_the_shell(
    visit: Any, tmp_path: Path, name: str, content: bytes
) -> None:
    page = visit(TABS[2])
    (tmp_path / name).write_bytes(content)
    upload(page, str(tmp_path / name))
    expect(page.locator("#preview .note")).to_be_visible()
    said = page.locator("#preview .note").inner_text()
    assert "--" not in said
    assert "/" not in said


def test_a_hundred_thousand_rows_get_a_sentence(visit: Any, tmp_path: Path) -> None:
    page = visit(TABS[2])
    (tmp_path / "many.csv").write_text("question,answer\n" + "How are you?,Fine\n" * 100_000)
    upload(page, str(tmp_path / "many.csv"))
    expect(page.locator("#preview .record")).to_have_count(3)
    page.click("#judge-file")
    expect(page.locator("#file-status .note")).to_contain_text("5,000")


def test_trust(visit: Any) -> None:
    page = visit(TABS[3])
    expect(page.locator("#trust .sentence").first).to_contain_text("this judge")
    assert page.locator("#trust .card").count() >= 7
    assert page.locator("#trust .card").first.locator("dt").all_inner_texts()[0] == "this judge"
