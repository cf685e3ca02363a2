"""The program that makes evenly distributed numbers."""
