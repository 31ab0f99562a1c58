"""Publishing to the Hub: what goes where (uploads), what differs from what is there (plan), sending it (push)."""
