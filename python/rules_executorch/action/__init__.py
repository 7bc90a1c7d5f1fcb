"""The part that knows Bazel: persistent worker, environment and progress of an action."""
