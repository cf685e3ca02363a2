"""The computer that simulates: its cores, its BLAS, and loops as machine code."""
