"""Loaded by the mutation runs: property tests draw the same examples every time and do not search for small ones."""

from hypothesis import Phase, settings

settings.register_profile(
    "mutation", derandomize=True, database=None, deadline=None, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("mutation")
