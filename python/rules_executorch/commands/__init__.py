"""One module per subcommand: arguments in, one call, printing out."""
