"""Halo: every core gathers the part of the zero-filled input frame that its outputs read."""
