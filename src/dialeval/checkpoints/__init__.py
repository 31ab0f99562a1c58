"""Weights: where they are found, the format of a checkpoint, and how one is checked, loaded and saved.

The embedded checkpoints are the folders of `weights/`.
"""
