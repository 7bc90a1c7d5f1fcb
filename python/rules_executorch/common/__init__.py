"""What every other package uses and no domain owns: errors, files, text, dtypes."""
