"""A record of all that users can see, written before and after a refactoring, and compared."""
