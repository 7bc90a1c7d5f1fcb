"""What actions tell Bazel's scheduler about their memory.

Bazel runs no more actions at once than their declared memory fits into the machine (or into
`--local_ram_resources`), and one that is larger than all of it runs alone.
"""

visibility([
    "//executorch/private/rules",
    "//tests/starlark",
])

AUTO = "auto"

_UNKNOWN = "4g"

def _resources(gigabytes):
    return {"cpu": 1, "memory": gigabytes * 1024}

# Bazel asks for top-level functions here, and calls them with the number of inputs, which says
# nothing about the size of the weights.
def _memory_1g(_os, _inputs):
    return _resources(1)

def _memory_2g(_os, _inputs):
    return _resources(2)

def _memory_4g(_os, _inputs):
    return _resources(4)

def _memory_8g(_os, _inputs):
    return _resources(8)

def _memory_16g(_os, _inputs):
    return _resources(16)

def _memory_32g(_os, _inputs):
    return _resources(32)

def _memory_64g(_os, _inputs):
    return _resources(64)

def _memory_128g(_os, _inputs):
    return _resources(128)

def _memory_256g(_os, _inputs):
    return _resources(256)

# In ascending order.
RESOURCE_SETS = {
    "1g": _memory_1g,
    "2g": _memory_2g,
    "4g": _memory_4g,
    "8g": _memory_8g,
    "16g": _memory_16g,
    "32g": _memory_32g,
    "64g": _memory_64g,
    "128g": _memory_128g,
    "256g": _memory_256g,
}

_GIB = 1 << 30

# Memory of a lowering without the weights: torch, exir, the graph.
_BASE = _GIB

# Bits of a weight: in a checkpoint, the fewest that are common, and in memory while it is lowered.
# Quantized weights take a byte each, with their scales; embeddings keep their dtype.
_STORED_BITS = {"gguf": 4, "safetensors": 16}
_LOWERED_BITS = {"float32": 32}
_OTHER_BITS = 16

def memory_of_weights(weight_bytes, format, dtype, quantized):
    """The memory that lowering a model takes, from the size of its checkpoint.

    At most 2.5 times the weights as they are lowered, and what there is without any; see
    docs/benchmarks.md for measurements.

    Args:
        weight_bytes: size of the files with weights, or 0 if it is not known.
        format: `safetensors` or `gguf`.
        dtype: of the exported program.
        quantized: whether it is quantized.

    Returns:
        A key of `RESOURCE_SETS`.
    """
    if not weight_bytes:
        return _UNKNOWN
    stored = _STORED_BITS[format]
    lowered = _OTHER_BITS if quantized else _LOWERED_BITS.get(dtype, _OTHER_BITS)
    needed = weight_bytes * lowered // stored * 5 // 2 + _BASE
    for name in RESOURCE_SETS:
        if needed <= int(name[:-1]) * _GIB:
            return name
    return RESOURCE_SETS.keys()[-1]
