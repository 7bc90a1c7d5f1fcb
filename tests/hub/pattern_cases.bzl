"""What patterns match, for the Starlark and the Python implementation.

The list is a literal of both languages. Each case is a pattern, a path, and whether it matches.
"""

visibility("private")

PATTERN_CASES = [
    ("*", "config.json", True),
    ("*", "onnx/model.onnx", True),
    ("*.json", "config.json", True),
    ("*.json", "onnx/config.json", True),
    ("*.json", "config.json.bak", False),
    ("*.json", ".json", True),
    ("config.json", "config.json", True),
    ("config.json", "onnx/config.json", False),
    ("config.json", "configXjson", False),
    ("Config.json", "config.json", False),
    ("model-?????-of-*.safetensors", "model-00001-of-00002.safetensors", True),
    ("model-?????-of-*.safetensors", "model-0001-of-00002.safetensors", False),
    ("onnx/", "onnx/model.onnx", True),
    ("onnx/", "onnx", False),
    ("onnx/", "onnx2/model.onnx", False),
    ("onnx/*", "onnx/a/b", True),
    ("*a*b*", "xxaxxbxx", True),
    ("*a*b*", "xxbxxaxx", False),
    ("*ab*ab", "abab", True),
    ("*ab*ab", "ab", False),
    ("a*a", "a", False),
    ("a*a", "aa", True),
    ("a**b", "ab", True),
    ("*?", "", False),
    ("?", "/", True),
    ("*o?el*", "my model (1).gguf", True),
    ("*o?el?", "my model.gguf", False),
    ("with space*", "with space/a b.txt", True),
    ("a+b(c).{x}", "a+b(c).{x}", True),
    ("a.b", "a\nb", False),
    ("a?b", "a\nb", True),
]
