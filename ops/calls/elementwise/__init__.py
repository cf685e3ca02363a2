"""Functions of single elements, of one tensor or two: arguments, checks and plans."""
