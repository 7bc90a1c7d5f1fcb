"""A config and options become an exported program (`.pt2`), without weights."""
