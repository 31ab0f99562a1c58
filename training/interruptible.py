"""Imported first by training scripts: until their own work begins, Ctrl-C ends them in one line.

Their imports take seconds, and an interrupt in the middle of those would show any library's insides.
"""

from dialeval.io import interrupts

interrupts.leave_at_once()
