"""Property tests draw the same examples in every run; ``--hypothesis-profile=explore`` draws new ones."""

from hypothesis import settings

settings.register_profile("ttsim", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("ttsim")
