"""The drop-in: scripts and tests that import ttnn run on ttsim, unchanged, inside two commands and a pytest plugin."""
