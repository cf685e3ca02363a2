"""Device operations, one file or folder per kind."""
