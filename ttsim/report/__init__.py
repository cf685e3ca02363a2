"""What a run used and gave: one summary of frozen figures, and writers that lay it out."""
