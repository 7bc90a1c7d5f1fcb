"""Entry point of every action and tool: `python main.py SUBCOMMAND ...`.

The interpreter runs isolated (`-I`), so nothing from the user's site-packages or the working
directory can be imported; this file adds its own folder, and nothing else, to the module path.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from rules_executorch.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
