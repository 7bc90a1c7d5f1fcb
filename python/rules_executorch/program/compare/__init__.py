"""Where two files that should be the same differ, in terms of their contents."""
