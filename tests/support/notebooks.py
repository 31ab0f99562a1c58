"""What a notebook shows of a value, and whether a page is well formed."""

from html.parser import HTMLParser

from IPython.core.formatters import format_display_data


def html_of(shown: object) -> str:
    formats, _ = format_display_data(shown)
    html: str = formats["text/html"]
    return html


class Page(HTMLParser):
    """Checks that tags close, and collects tags, attributes, ids and text."""

    VOID = frozenset({"meta", "br", "line", "circle"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        assert self.open == []
        self.ids = [value for name, value in self.attributes if name == "id"]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
