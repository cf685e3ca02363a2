"""Programs for people who work on ttsim: benchmarks, calibration, validation. Run as ``python -m tools.NAME``."""
