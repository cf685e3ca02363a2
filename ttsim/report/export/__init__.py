"""Writers of files for other tools, all from the same record of a run; no figure is computed here."""
