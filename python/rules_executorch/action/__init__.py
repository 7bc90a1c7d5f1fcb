"""How an action runs: its environment, its progress, the worker. The only part that knows Bazel."""
