"""The refusals of the installer and of the lock command."""

from __future__ import annotations


class InstallError(Exception):
    """Something a person can mend: what failed and what to do, in sentences."""
