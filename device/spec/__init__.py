"""Device descriptions: figures with their sources, read from TOML files and checked."""
