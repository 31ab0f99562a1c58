"""What people read of a run: leaderboards as Markdown, HTML and on a terminal, and the pictures beside them."""
