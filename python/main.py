"""Entry point of every action and tool: `python main.py SUBCOMMAND ...`.

The toolchain's launcher keeps the user's site-packages and the working directory off the module
path; this file adds its own folder, and nothing else.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from rules_executorch.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
