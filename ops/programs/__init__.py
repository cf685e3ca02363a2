"""What a device runs: one folder for each kind of device operation."""
