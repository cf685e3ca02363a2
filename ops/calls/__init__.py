"""What a user asks for: arguments, checks, and the plan of device operations that answers it."""
