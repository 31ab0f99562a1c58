"""Plots: columns in, a figure out."""
