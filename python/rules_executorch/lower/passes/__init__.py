"""Rewrites of a graph that backends ask for."""
