"""Plans of calls: arguments, checks in the real library's order, device operations."""
