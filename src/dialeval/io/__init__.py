"""Files that appear whole or not at all, tables as text, what a notebook shows, Ctrl-C in one line."""
