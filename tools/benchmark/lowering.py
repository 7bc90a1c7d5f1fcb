"""Time lowering of a Llama of any depth and width, stock against fast.

Each measurement is a process of its own, so that peak memory and the caches of one say nothing
about another. Weights are random: lowering does not look at their values.

    python tools/benchmark/lowering.py --layers 4 --width 64
    python tools/benchmark/lowering.py --layers 30 --smollm2 --json out.json
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Shape:
    """The sizes of the model to lower."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    vocab: int
    cache: int


def shape_of(args: argparse.Namespace) -> Shape:
    """The model's sizes from the command line: SmolLM2-135M's own, or `--width` of everything."""
    if args.smollm2:
        return Shape(args.layers, 576, 1536, 9, 3, 49152, 2048)
    width = args.width
    return Shape(args.layers, width, 2 * width, 4, 2, 256, 64)


def export(shape: Shape, quantized: bool) -> tuple[Any, int]:
    """Export a random Llama with a static cache and a dynamic sequence length.

    Returns:
        The exported program and the bytes of its parameters.
    """
    import torch
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=max(shape.cache, 8192),
        rope_theta=100000.0,
        tie_word_embeddings=True,
        attn_implementation="sdpa",
    )
    model = LlamaForCausalLM(config).eval()
    model.generation_config = GenerationConfig(
        use_cache=True,
        cache_implementation="static",
        max_length=shape.cache,
        cache_config={"batch_size": 1, "max_cache_len": shape.cache},
    )
    model.requires_grad_(False)
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    if quantized:
        from torchao.quantization import quantize_
        from torchao.quantization.granularity import PerGroup
        from torchao.quantization.quant_api import Int8DynamicActivationIntxWeightConfig
        from torchao.utils import unwrap_tensor_subclass

        config_8da4w = Int8DynamicActivationIntxWeightConfig(
            weight_dtype=torch.int4, weight_granularity=PerGroup(32)
        )
        quantize_(model, config_8da4w)
        unwrap_tensor_subclass(model)
    length = torch.export.Dim("length", min=2, max=shape.cache - 1)
    program = torch.export.export(
        TorchExportableModuleWithStaticCache(model),
        args=(),
        kwargs={
            "input_ids": torch.zeros((1, 3), dtype=torch.long),
            "cache_position": torch.arange(3),
        },
        dynamic_shapes={"input_ids": {1: length}, "cache_position": {0: length}},
        strict=True,
    )
    return program, weights


def peak_rss() -> int:
    """The largest resident size of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def cpu_seconds() -> float:
    """The processor time of this process and the children it waited for, in seconds."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def measure(shape: Shape, *, stock: bool, quantized: bool) -> dict[str, Any]:
    """Export and lower in this process.

    Returns:
        Wall and processor seconds of each stage, peak resident bytes after each, and the digest
        of the `.pte`.
    """
    from rules_executorch.action.quiet import quiet_libraries

    quiet_libraries()
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    if stock:
        lowering: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    else:
        from rules_executorch import compat
        from rules_executorch.backends import find_backend

        lowering = compat.patched_lowering(find_backend("xnnpack").patches)
    result: dict[str, Any] = {"shape": dataclasses.asdict(shape), "stock": stock}
    result["quantized"] = quantized
    mark, cpu = time.perf_counter(), cpu_seconds()

    def lap(name: str) -> None:
        nonlocal mark, cpu
        now, used = time.perf_counter(), cpu_seconds()
        result[name + "_s"] = round(now - mark, 2)
        result[name + "_cpu_s"] = round(used - cpu, 2)
        result[name + "_rss"] = peak_rss()
        mark, cpu = now, used

    with torch.no_grad():
        program, result["weight_bytes"] = export(shape, quantized)
        lap("export")
        with lowering as report:
            partitioners = [XnnpackPartitioner()]
            if quantized:
                from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
                    XnnpackDynamicallyQuantizedPartitioner,
                )

                partitioners.insert(0, XnnpackDynamicallyQuantizedPartitioner())
            edge = to_edge_transform_and_lower(program, partitioner=partitioners)
            lap("lower")
            executorch = edge.to_executorch()
            lap("emit")
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "model.pte"
                executorch.save(str(path))
                lap("write")
                with path.open("rb") as file:
                    result["sha256"] = hashlib.file_digest(file, "sha256").hexdigest()
                result["pte_bytes"] = path.stat().st_size
    for unit in ("_s", "_cpu_s"):
        stages = ("lower", "emit", "write")
        result["total" + unit] = round(sum(result[stage + unit] for stage in stages), 2)
    if report is not None:
        result["active"] = report.active
        result["skipped"] = report.skipped
    return result


def run(args: argparse.Namespace, *, stock: bool) -> dict[str, Any]:
    """Measure in a fresh process; `wall_s` is all of it, with the imports.

    Raises:
        subprocess.CalledProcessError: the process failed; its messages are on stderr.
    """
    command = [sys.executable, __file__, "--child", "--layers", str(args.layers)]
    command += ["--width", str(args.width)]
    command += ["--smollm2"] if args.smollm2 else []
    command += ["--quantized"] if args.quantized else []
    command += ["--stock"] if stock else []
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment)
    wall = round(time.perf_counter() - start, 2)
    return json.loads(done.stdout.splitlines()[-1]) | {"wall_s": wall}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the measurements and print them, one row each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=64, help="hidden size, a multiple of 8")
    parser.add_argument("--smollm2", action="store_true", help="the widths of SmolLM2-135M")
    parser.add_argument("--quantized", action="store_true", help="8da4w, groups of 32")
    parser.add_argument("--stock", action="store_true", help="measure the stock pipeline as well")
    parser.add_argument("--only-stock", action="store_true", help="measure the stock one alone")
    parser.add_argument("--json", type=pathlib.Path, help="write the measurements to this file")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.child:
        result = measure(shape_of(args), stock=args.stock, quantized=args.quantized)
        print(json.dumps(result))
        return 0
    stocks = [True] if args.only_stock else [True, False] if args.stock else [False]
    results = [run(args, stock=stock) for stock in stocks]
    for result in results:
        label = "stock" if result["stock"] else "fast"
        peak = max(value for key, value in result.items() if key.endswith("_rss"))
        print(
            f"{label:6} layers {args.layers:3}  export {result['export_s']:7.1f} s  "
            f"lower {result['lower_s']:7.1f} s  emit {result['emit_s']:6.1f} s  "
            f"write {result['write_s']:5.1f} s  cpu {result['total_cpu_s']:7.1f} s  "
            f"peak {peak / 2**20:7.0f} MiB  "
            f"{result['sha256'][:16]}"
        )
    if len(results) == 2:
        wall, cpu = (results[0][k] / results[1][k] for k in ("total_s", "total_cpu_s"))
        same = results[0]["sha256"] == results[1]["sha256"]
        print(f"ratio {wall:.1f} (processor time {cpu:.1f}), same bytes: {same}")
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
