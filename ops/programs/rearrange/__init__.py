"""Programs that put numbers in another order: permutations, padding, channels first or last."""
