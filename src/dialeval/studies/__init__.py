"""Studies of their own: calibration, combined judges, features."""
