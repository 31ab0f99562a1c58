"""Studies of their own: calibration, features."""
