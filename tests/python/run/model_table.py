"""docs/models.md: each row is a family whose tiny checkpoint was built and compared with eager.

`python model_table.py docs/models.md` builds every family and writes the file; the test builds them
and compares.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import tempfile
from pathlib import Path

import torch
from model_families import FAMILIES, Family

from rules_executorch.checkpoint.config import load_config
from rules_executorch.checkpoint.describe import describe_safetensors
from rules_executorch.checkpoint.sources import find_sources
from rules_executorch.checkpoint.weights import open_model_weights
from rules_executorch.common.files import write_json
from rules_executorch.export.generation import export_model
from rules_executorch.export.options import ExportOptions
from rules_executorch.export.pt2 import write_program
from rules_executorch.lower.constant_methods import constant_methods
from rules_executorch.lower.options import LowerOptions
from rules_executorch.lower.pipeline import lower
from rules_executorch.run import parity
from rules_executorch.run.parity_stateless import compare_plain

BACKEND = "xnnpack"
TOLERANCE = parity.DEFAULT_TOLERANCE["float32"]

HEADER = f"""# Models

Each row is a family of transformers whose tiny checkpoint, written by `save_pretrained` with random
weights, became a program of the backend `{BACKEND}` by way of `hf_model`, export and lowering, and
was executed by the runtime and compared with eager: for text generation prompts of many lengths,
two chunks and then single tokens, the whole cache, and a new conversation in a used cache. The task
was found out from the checkpoint. The largest difference is a share of the largest output.

This file is written by `tests/python/run/model_table.py` and compared by a test.

| family | type | task | class | inputs | outputs | cache | largest difference |
|---|---|---|---|---|---|---|---|
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """One line, and the difference that it rests on."""

    cells: tuple[str, ...]
    difference: float

    def line(self) -> str:
        """The line, with room for a machine that rounds differently."""
        power = math.ceil(math.log10(max(3 * self.difference, 1e-7)))
        return f"| {' | '.join(self.cells)} | below 1e{power} |"


def save_checkpoint(family: Family, folder: Path) -> None:
    """Writes a checkpoint of a family with the code of transformers that others use."""
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    from rules_executorch.checkpoint.tasks import TASKS

    config = CONFIG_MAPPING[family.model_type](**family.config)
    config.architectures = []
    torch.manual_seed(0)
    kind = getattr(transformers, TASKS[family.task].auto_class)
    model = kind.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                # Larger than the usual start, so that every layer says something.
                width = parameter[0].numel()
                parameter.copy_(torch.randn_like(parameter) * 1.5 / width**0.5)
    model.save_pretrained(folder)


def build(family: Family, folder: Path) -> Row:
    """Builds and compares a family; raises `UserError` where it is refused."""
    save_checkpoint(family, folder)
    files = sorted(str(file) for file in folder.iterdir())
    description, reduced = describe_safetensors(find_sources(files), "")
    assert description.task == family.task, (description.task, family.task)
    config_path, program = str(folder / "reduced.json"), str(folder / "model.pte")
    write_json(config_path, reduced)
    config = load_config(config_path)
    exported = export_model(config, ExportOptions(task="", **family.options))
    write_program(exported.program, str(folder / "model.pt2"))
    signature = exported.signature
    weights = [file for file in files if file.endswith(".safetensors")]
    lower(
        str(folder / "model.pt2"),
        signature,
        open_model_weights(weights, config, family.task),
        LowerOptions(backend=BACKEND),
        constant_methods(signature, description),
        out_program=program,
    )
    with open_model_weights(weights, config, family.task) as opened:
        runs = parity.RuntimeProgram(program)
        if signature.cache is None:
            outcome = compare_plain(runs, config, opened, signature, tolerance=TOLERANCE)
        else:
            outcome = parity.compare(
                runs,
                parity.Eager(
                    config, opened, "float32", max_cache_len=family.options["max_cache_len"]
                ),
                signature,
                tolerance=TOLERANCE,
                window=parity.sliding_window(config),
            )
    assert outcome.failure() is None, outcome.failure()
    method = signature.forward
    cells = (
        family.name,
        f"`{family.model_type}`",
        family.task,
        f"`{signature.architecture}`",
        ", ".join(f"`{tensor.name}`" for tensor in method.inputs),
        ", ".join(f"`{tensor.name}`" for tensor in method.outputs),
        signature.cache.kind.replace("_", " ") if signature.cache else "",
    )
    worst = max(found.difference * TOLERANCE / found.allowed for found in outcome.differences)
    return Row(cells, worst)


def main(path: str) -> None:
    """Builds all families, and writes the file when every one of them is right."""
    lines = []
    for family in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            lines.append(build(family, Path(folder)).line())
        print(lines[-1], flush=True)
    Path(path).write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
