"""The drop-in: two commands and a pytest plugin run unchanged scripts and tests that import ttnn on ttsim."""
