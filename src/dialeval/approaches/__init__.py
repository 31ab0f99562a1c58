"""The five papers' approaches, one file each: architecture, losses, scoring rule, in that order."""
