"""An exported program and weights become a program (`.pte`) for a backend."""
