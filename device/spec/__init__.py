"""What a machine is made of: its figures, each with its source, read from TOML files and checked."""
