"""The version, and how to install more of it, where everything can read both without importing the package's face."""

__version__ = "0.3.0"


def how_to_install(extra: str) -> str:
    """A command that works wherever the package came from; it is on no package index."""
    return f"pip install '.[{extra}]' in a clone of https://github.com/dialeval/dialeval"
