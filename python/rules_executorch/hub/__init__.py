"""The Hugging Face Hub: listing a revision, and the lock file of its files."""
