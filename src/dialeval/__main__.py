"""`python -m dialeval` is the `dialeval` command (torchrun needs a module)."""

from dialeval.cli import main

main()
