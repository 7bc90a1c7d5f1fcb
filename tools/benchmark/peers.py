"""Export, lower and run a Llama of two layers, by the rules' code or by transformers' exporter.

    python tools/benchmark/peers.py --kind exporter --root . --json out.json

A measurement is a process of its own. Weights are random.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

CACHE = 128
SECONDS = 2.0
SHAPES = {
    True: (576, 1536, 9, 3, 49152),
    False: (64, 128, 4, 2, 256),
}
"""Hidden, intermediate, heads, heads of keys and values, vocabulary: SmolLM2-135M's, or tiny."""


def config_of(smollm2: bool) -> dict[str, Any]:
    """config.json of two layers."""
    hidden, intermediate, heads, kv_heads, vocab = SHAPES[smollm2]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_hidden_layers": 2,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": CACHE,
        "tie_word_embeddings": True,
        "vocab_size": vocab,
    }


def decode_speed(program: str, inputs: Sequence[Any]) -> float:
    """Calls of `forward` per second, each with one token, through the C++ runtime."""
    from executorch.runtime import Runtime

    loaded = Runtime.get().load_program(program)
    method = loaded.load_method("forward")
    method.execute(inputs)
    calls, start = 0, time.perf_counter()
    while (seconds := time.perf_counter() - start) < SECONDS:
        method.execute(inputs)
        calls += 1
    return calls / seconds


def ours(config: dict[str, Any], folder: Path) -> dict[str, float]:
    """What the rules do, with ExecuTorch's own operators for cache and attention."""
    import torch

    from rules_executorch.checkpoint import tiny
    from rules_executorch.checkpoint.config import load_config
    from rules_executorch.checkpoint.describe import describe_safetensors
    from rules_executorch.checkpoint.safetensors_writer import write
    from rules_executorch.checkpoint.sources import find_sources
    from rules_executorch.checkpoint.weights import open_weights
    from rules_executorch.export.generation import export_model
    from rules_executorch.export.options import ExportOptions
    from rules_executorch.export.pt2 import write_program
    from rules_executorch.lower.constant_methods import constant_methods
    from rules_executorch.lower.options import LowerOptions
    from rules_executorch.lower.pipeline import lower
    from rules_executorch.program.operator_libraries import load_llm_operators

    load_llm_operators()
    path, exported, program = (str(folder / name) for name in ("config.json", "x.pt2", "x.pte"))
    weights = str(folder / "model.safetensors")
    Path(path).write_text(json.dumps(config))
    loaded = load_config(path)
    write(weights, tiny.make(loaded, 0, "float32"))
    description, _ = describe_safetensors(find_sources([path, weights]), "text-generation")
    operators = ("custom_kv_cache", "custom_sdpa")
    start = time.perf_counter()
    export = export_model(loaded, ExportOptions(max_cache_len=CACHE, custom_ops=operators))
    write_program(export.program, exported)
    constants = constant_methods(export.signature, description)
    options = LowerOptions(backend="xnnpack")
    opened = open_weights([weights])
    lower(exported, export.signature, opened, options, constants, out_program=program)
    seconds = time.perf_counter() - start
    inputs = [torch.tensor([[5]]), torch.tensor([9])]
    return {"build_s": seconds, "decode_per_s": decode_speed(program, inputs)}


def exporter(config: dict[str, Any], folder: Path) -> dict[str, float]:
    """`transformers.exporters.ExecutorchExporter`, for generation with a static cache."""
    import torch
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
    from transformers.exporters.configs import ExecutorchConfig
    from transformers.exporters.exporter_executorch import ExecutorchExporter
    from transformers.exporters.utils import decompose_for_generation

    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**config)).eval().requires_grad_(False)
    generation = GenerationConfig(
        cache_implementation="static",
        max_length=CACHE,
        use_cache=True,
        pad_token_id=0,
    )
    prompt = {
        "input_ids": torch.ones((1, 8), dtype=torch.long),
        "attention_mask": torch.ones((1, 8), dtype=torch.long),
    }
    with torch.no_grad():
        start = time.perf_counter()
        exported = ExecutorchExporter().export_for_generation(
            model,
            prompt,
            config=ExecutorchConfig(dynamic=True, backend="xnnpack"),
            generation_config=generation,
        )
        exported.save_pretrained(folder)
        seconds = time.perf_counter() - start
        _, given = decompose_for_generation(model, prompt, generation_config=generation)["decode"]
        inputs = _flat(exported.runners["decode"], given)
        (program,) = folder.glob("**/*decode*.pte")
        return {"build_s": seconds, "decode_per_s": decode_speed(str(program), inputs)}


def _flat(runner: Any, given: dict[str, Any]) -> list[Any]:
    """The inputs of a component as its program takes them, as its own runner feeds them."""
    found: list[Any] = []

    class Method:
        def execute(self, feed: Sequence[Any]) -> Any:
            found.extend(feed)
            raise StopIteration

    method, runner.method = runner.method, Method()
    try:
        runner(**given)
    except StopIteration:
        pass
    finally:
        runner.method = method
    return found


KINDS: dict[str, Callable[[dict[str, Any], Path], dict[str, float]]] = {
    "ours": ours,
    "exporter": exporter,
}


def main(argv: Sequence[str]) -> int:
    """Measures one kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--root", required=True, help="the checkout, for its Python modules")
    parser.add_argument("--smollm2", action="store_true", help="the widths of SmolLM2-135M")
    parser.add_argument("--json", required=True, help="write the measurement to this file")
    args = parser.parse_args(argv)
    sys.path.insert(0, str(Path(args.root, "python")))
    from rules_executorch.action.quiet import quiet_libraries

    quiet_libraries()
    with tempfile.TemporaryDirectory() as folder:
        measured = KINDS[args.kind](config_of(args.smollm2), Path(folder))
    Path(args.json).write_text(json.dumps(measured) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
