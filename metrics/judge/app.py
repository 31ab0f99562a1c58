"""The module's page; dialeval builds it, so that all modules' pages look alike."""

from dialeval.hub.modules import build_page

page = build_page(__file__)

if __name__ == "__main__":
    page.launch()
