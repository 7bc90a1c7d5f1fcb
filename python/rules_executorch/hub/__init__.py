"""The lock of a model: a revision of the Hugging Face Hub and the hashes of its files."""
