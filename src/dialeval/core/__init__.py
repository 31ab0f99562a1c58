"""What everything stands on: a checked row, its cautions, values with signature, the texts that name a metric."""
