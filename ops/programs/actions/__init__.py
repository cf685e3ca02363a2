"""What programs of several kinds do alike."""
