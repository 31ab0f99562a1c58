"""Publishing to the Hub: what goes where (parcels), what differs from what is there (plan), sending it (push)."""
