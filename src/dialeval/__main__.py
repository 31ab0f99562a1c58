"""`python -m dialeval` is the `dialeval` command where its script is not on the path."""

from dialeval.io import interrupts


def main() -> None:
    """Listen for interrupts first: the imports behind the command take a second."""
    interrupts.leave_at_once()
    from dialeval.cli import main as run

    run()


if __name__ == "__main__":
    main()
