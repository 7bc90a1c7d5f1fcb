"""Quantities as people read them."""

from __future__ import annotations


def size_text(size: int) -> str:
    """Bytes for people: `412 B`, `1.50 MB` (powers of ten)."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= scale:
            return f"{size / scale:.2f} {unit}"
    return f"{size} B"
