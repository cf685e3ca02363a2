"""Writers, which format figures for a terminal or as JSON and compute no figures."""
