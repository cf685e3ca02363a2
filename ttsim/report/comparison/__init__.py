"""Two reports side by side: operations matched in order, and what makes them differ."""
