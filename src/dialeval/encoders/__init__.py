"""From exchanges to rows of numbers: layout, token ids, encoders that run fast."""
