"""Where two files that should be the same differ, in the terms of what they hold."""
