"""Writers of files that other tools open, each from the one record of what ran; no figure is computed here."""
