"""Charts as standalone SVG and HTML: the same bytes for the same figures, nothing to install and nothing to load."""
