"""One reader per raw format. A reader gives rows; what a benchmark means is said in the catalogue."""
