"""Tiny programs, exported once and lowered for each backend, as the two actions do it."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rules_executorch.action.quiet import quiet_libraries

quiet_libraries()

from rules_executorch.checkpoint import tiny  # noqa: E402
from rules_executorch.checkpoint.config import load_config  # noqa: E402
from rules_executorch.checkpoint.description import (  # noqa: E402
    ModelDescription,
    PassedOver,
    TokenizerDescription,
)
from rules_executorch.checkpoint.safetensors_writer import write  # noqa: E402
from rules_executorch.checkpoint.tasks import GENERATION as GENERATES  # noqa: E402
from rules_executorch.checkpoint.weights import open_weights  # noqa: E402
from rules_executorch.common import guard, schema  # noqa: E402
from rules_executorch.export.generation import export_model  # noqa: E402
from rules_executorch.export.options import ExportOptions  # noqa: E402
from rules_executorch.export.pt2 import write_program  # noqa: E402
from rules_executorch.export.signature import Signature  # noqa: E402
from rules_executorch.lower import pipeline  # noqa: E402
from rules_executorch.lower.calibrate import Calibration  # noqa: E402
from rules_executorch.lower.constant_methods import constant_methods  # noqa: E402
from rules_executorch.lower.options import LowerOptions  # noqa: E402
from rules_executorch.lower.pipeline import Lowered  # noqa: E402
from rules_executorch.program.info import ProgramInfo  # noqa: E402

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "dtype": "float32",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "vocab_size": 128,
}

RESNET: dict[str, Any] = {
    "architectures": ["ResNetForImageClassification"],
    "model_type": "resnet",
    "dtype": "float32",
    "num_channels": 3,
    "embedding_size": 8,
    "hidden_sizes": [8, 16],
    "depths": [1, 1],
    "layer_type": "basic",
    "num_labels": 4,
}

BERT: dict[str, Any] = {
    "architectures": ["BertForSequenceClassification"],
    "model_type": "bert",
    "dtype": "float32",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 32,
    "num_labels": 3,
    "vocab_size": 128,
}

GENERATION = ExportOptions(max_cache_len=16, max_seq_len=4)
FIXED = dataclasses.replace(GENERATION, dynamic_seq_len=False)
IMAGES = ExportOptions(task="image-classification", image_size=32)
TEXTS = ExportOptions(task="text-classification", max_seq_len=8, dynamic_seq_len=False)

DESCRIPTION = ModelDescription(
    schema_version=1,
    format="safetensors",
    task="text-generation",
    architecture=None,
    model_type="llama",
    eos_ids=(2,),
    bos_id=1,
    pad_id=None,
    vocab_size=128,
    tokenizer=TokenizerDescription(None, vocab_size=None, chat_template=False),
    max_position_embeddings=None,
    hidden_size=None,
    num_hidden_layers=None,
    num_attention_heads=None,
    num_key_value_heads=None,
    head_dim=None,
    sliding_window=None,
    tied_embeddings=False,
    num_parameters=1,
    weight_bytes=4,
    dtype="float32",
    license=None,
    passed_over=PassedOver((), ()),
    quantization=None,
)


@dataclasses.dataclass(frozen=True)
class Exported:
    """An export on disk, with random weights of a fixed seed."""

    config_path: str
    weights_path: str
    program_path: str
    signature: Signature

    @property
    def config(self) -> Any:
        return load_config(self.config_path)


def export(
    folder: Path, config: dict[str, Any], options: ExportOptions, dtype: str = "float32"
) -> Exported:
    """Makes a checkpoint and exports its graph."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [str(folder / name) for name in ("config.json", "model.safetensors", "model.pt2")]
    config_path, weights_path, program_path = paths
    Path(config_path).write_text(json.dumps(config))
    write(weights_path, tiny.make(load_config(config_path), 0, dtype, options.task or GENERATES))
    exported = export_model(load_config(config_path), options)
    write_program(exported.program, program_path)
    schema.write(str(folder / "signature.json"), exported.signature)
    return Exported(config_path, weights_path, program_path, exported.signature)


def lower(
    exported: Exported,
    path: Path,
    backend: str,
    options: dict[str, Any] | None = None,
    calibration: Calibration | None = None,
) -> tuple[Lowered, ProgramInfo]:
    """Lowers an export and reads the program back."""
    return lower_with(exported, path, LowerOptions(backend, options or {}), calibration)


def lower_with(
    exported: Exported,
    path: Path,
    lowering: LowerOptions,
    calibration: Calibration | None = None,
) -> tuple[Lowered, ProgramInfo]:
    """The same, with any options."""
    written = pipeline.lower(
        exported.program_path,
        exported.signature,
        open_weights([exported.weights_path]),
        lowering,
        constant_methods(exported.signature, DESCRIPTION),
        out_program=str(path),
        calibration=calibration,
    )
    return written.lowered, written.info


def lower_elsewhere(
    exported: Exported, path: Path, backend: str, options: dict[str, Any] | None = None
) -> bytes:
    """Lowers in another process with another hash seed, time zone and temporary folder."""
    request = {"exported": dataclasses.asdict(exported), "path": str(path)}
    request |= {"backend": backend, "options": options}
    process = _elsewhere()
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == "0\n", "see what it printed"
    return path.read_bytes()


@functools.cache
def _elsewhere() -> subprocess.Popen[str]:
    """Such a process, which forks one for each request: the imports are paid for once."""
    environment = dict(os.environ, PYTHONHASHSEED="4711", TZ="Asia/Tokyo")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, __file__],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(process.communicate)
    return process


@functools.cache
def payload(path: str, index: int = 0) -> bytes:
    """The bytes of one delegate."""
    from executorch.exir._serialize._program import deserialize_pte_binary

    program = deserialize_pte_binary(Path(path).read_bytes()).program
    return bytes(program.backend_delegate_data[index].data)


def _serve() -> None:
    """Lowers in a fork for each line of standard input, and answers with its status."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)

        def work(request: dict[str, Any] = request) -> int:
            with guard.temporary_files():
                fields, path = request["exported"], Path(request["path"])
                fields["signature"] = schema.parse(
                    Signature, fields["signature"], "The signature", instead=""
                )
                lower(Exported(**fields), path, request["backend"], request["options"])
            return 0

        with guard.Child(work) as child:
            print(child.wait(), file=answers, flush=True)


if __name__ == "__main__":
    _serve()
