"""Plans of oneDNN's deconvolutions."""
