"""`python -m rules_executorch SUBCOMMAND ...`, for use without Bazel."""

import sys

from rules_executorch.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
