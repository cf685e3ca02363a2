"""Records of calls: captures, memory reports, profiles."""
