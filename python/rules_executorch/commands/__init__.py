"""One module per subcommand; see `rules_executorch.cli`."""
