"""A manifest in full, which tests change where they care."""

from __future__ import annotations

from rules_executorch.checkpoint.description import PassedOver
from rules_executorch.export.options import ExportOptions
from rules_executorch.export.signature import Cache
from rules_executorch.lower.options import LowerOptions
from rules_executorch.program.info import TensorInfo
from rules_executorch.records.manifest import (
    Delegation,
    ExportEntry,
    FileEntry,
    InputEntries,
    LargeLayer,
    LargeTensor,
    LowerEntry,
    Manifest,
    Method,
    ModelEntry,
    Patches,
    Tied,
    VocabSize,
)

METHOD = Method(
    inputs=[TensorInfo("int64", [1, 16], True)],
    outputs=[TensorInfo("float32", [1, 1, 320], False)],
    delegates={"XnnpackBackend": 1},
    operators={"aten::add.out": 3, "my::op.out": 1, "executorch_prim::add.Scalar": 9},
    planned_bytes=[6000, 2000],
    delegation=Delegation({"aten::linear": 7}, {"aten::add.Tensor": 2, "my::op": 1}, 0.7),
    largest_tensors=[
        LargeTensor(4000, "aten::mm.out", "model.layers.0.mlp.up_proj"),
        LargeTensor(1000, "delegate", ""),
    ],
)

MANIFEST = Manifest(
    schema_version=1,
    program=FileEntry("program.pte", 3_000_000, "a" * 64),
    data=None,
    inputs=InputEntries(
        config=FileEntry("config.json", 10, "b" * 64),
        exported=FileEntry("exported.pt2", 20, "c" * 64),
        weights=[FileEntry("model.safetensors", 900, "d" * 64)],
    ),
    versions={"rules_executorch": "0.1.0", "executorch": "1.5.1", "torch": "2.13.0+cpu"},
    model=ModelEntry(
        architecture="LlamaForCausalLM",
        model_type="llama",
        task="text-generation",
        license="apache-2.0",
        format="safetensors",
        quantization=None,
        parameters=225,
        passed_over=PassedOver((), ()),
    ),
    export=ExportEntry(
        adapter="static_cache",
        cache=Cache("static_cache", 1, 1, 64, (2,), (4,), "float32", 4096),
        dtype="float32",
        max_seq_len=16,
        options=ExportOptions("text-generation", max_cache_len=64),
    ),
    lower=LowerEntry(
        backend="xnnpack",
        runtime_backend="XnnpackBackend",
        options=LowerOptions("xnnpack"),
        calibration=None,
        quantized=None,
        patches=Patches(["quick"], {}),
    ),
    methods={"forward": METHOD},
    constant_methods={"get_max_context_len": 64},
    sizes={"file": 3_000_000, "program": 50_000, "constants": 2_000_000, "delegates": 950_000},
    largest_layers=[
        LargeLayer("model.embed", 1_200_000),
        LargeLayer("model.layers.0.mlp.down_proj", 70_000),
    ],
    vocab_size=VocabSize(model=320, tokenizer=300),
    tied=[Tied(["embed", "head"], ["XnnpackBackend", "constants"])],
    quantization=None,
)
