"""Config in, `.pt2` out: adapters of the cache, source quantization, signature."""
