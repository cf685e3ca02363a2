"""Points: single calls of experiments, what became of each as a row, and what makes two of them the same."""
