"""Targets in Python run on the locked packages, not on a Python from PATH."""

import importlib.metadata
import sys

if __name__ == "__main__":
    assert sys.version_info[:2] == (3, 11), sys.version
    assert importlib.metadata.version("executorch") == "1.5.1"
    assert importlib.metadata.version("torch").startswith("2.13.0")
    assert sys.flags.no_user_site
