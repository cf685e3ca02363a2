"""Modules of ttnn that scripts import names from; ``import ttsim.device`` also finds them."""
