"""The version, and how to install more of it, where everything can read both without importing the package's face."""

__version__ = "0.2.0"


def how_to_install(extra: str) -> str:
    """A command that works wherever the package came from; on no index is it to be had by its name alone."""
    return f"pip install '.[{extra}]' in a clone of https://github.com/dialeval/dialeval"
