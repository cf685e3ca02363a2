"""What calls are never below, without a plan."""
