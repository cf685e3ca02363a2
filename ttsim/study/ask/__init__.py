"""Questions about calls as lines of JSON, and their answers."""
