"""The worked study: eight layers of two networks on three devices, as docs/study.md tells it."""
