"""The one exception type for mistakes a user can mend."""

from __future__ import annotations


class UserError(Exception):
    """A refusal in words: what is refused, why, and what to write instead.

    The command line prints it as sentences without a traceback and exits with status 1. Any other
    exception is a fault of this package or of a library, and keeps its traceback.
    """

    def __init__(self, what: str, *, instead: str | None = None) -> None:
        """Creates the refusal.

        Args:
            what: full sentences that say what is refused and why.
            instead: a full sentence that says what to write or do instead.
        """
        self.what = what.strip()
        self.instead = instead.strip() if instead else None
        super().__init__(f"{self.what} {self.instead}" if self.instead else self.what)
