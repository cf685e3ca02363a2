"""Writer of self-contained pages: text with inline style and pictures, and nothing loaded from a network."""
