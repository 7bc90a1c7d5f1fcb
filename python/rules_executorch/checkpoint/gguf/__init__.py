"""GGUF checkpoints: header, weights, tokenizer, and their translation to a config."""
