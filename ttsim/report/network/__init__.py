"""The report on a whole network: its device operations in order, sums of them, and the fullest moment of L1."""
