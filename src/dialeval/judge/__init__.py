"""Our own judge: an encoder with a head per task, what the words tell, and verdicts in sentences."""
