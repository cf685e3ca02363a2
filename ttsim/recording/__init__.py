"""What is written down while calls run: captures, memory reports, profiles."""
