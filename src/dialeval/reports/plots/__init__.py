"""Plots: columns, or results of a lower floor, in; a figure out."""
