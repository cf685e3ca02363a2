"""Writer of self-contained pages, with inline style and pictures, that load nothing from a network."""
