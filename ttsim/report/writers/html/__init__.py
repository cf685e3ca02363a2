"""Writer of self-contained pages: text with inline style and pictures, no script and nothing from a network."""
