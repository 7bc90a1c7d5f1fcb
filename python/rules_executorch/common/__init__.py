"""What belongs to no domain: errors, files, text, dtypes."""
