"""Device operations: from shapes and configs to a plan, and what each planned operation does to numbers."""
