"""Statistics of agreement: numbers in, numbers out. Nothing else of the package is imported here."""
