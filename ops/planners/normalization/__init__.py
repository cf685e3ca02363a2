"""Plans of normalizations."""
