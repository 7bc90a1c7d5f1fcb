"""Builds through Bazel, in a workspace made for them: cold, null, and after a change.

The workspace has a checkpoint of its own, so that its weights can be changed, and one model for
eight kinds of devices. Its output base is a temporary folder: nothing of an earlier build is there,
and no cache of outputs is asked. The toolchain and what Bazel downloads are shared with the
checkout, as on any machine that has built once.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rules_executorch.common import guard

DEVICES = {
    "android_arm64": ("android", "arm64"),
    "android_x86_64": ("android", "x86_64"),
    "ios_arm64": ("ios", "arm64"),
    "ios_x86_64": ("ios", "x86_64"),
    "linux_arm64": ("linux", "arm64"),
    "linux_x86_64": ("linux", "x86_64"),
    "macos_arm64": ("macos", "arm64"),
    "windows_x86_64": ("windows", "x86_64"),
}
"""Names of the devices, to the system and the processor of each."""

ONE = "linux_x86_64"

_MODULE = """\
module(name = "benchmark_of_builds")

bazel_dep(name = "platforms", version = "1.0.0")
bazel_dep(name = "rules_executorch", version = "0.1.0")
local_path_override(
    module_name = "rules_executorch",
    path = {path},
)
"""

_BUILD = """\
load("@rules_executorch//executorch:defs.bzl", "executorch_device", "executorch_model", "hf_model")

hf_model(
    name = "model",
    srcs = glob(["checkpoint/*"]),
    task = "text-generation",
)
"""

_DEVICE = """
executorch_device(
    name = {name},
    backend = "xnnpack",
    constraint_values = ["@platforms//os:{system}", "@platforms//cpu:{processor}"],
)
"""

# What `lowering.py` exports: torch's operators, logits of every position.
_MODEL = """
executorch_model(
    name = "assistant",
    custom_ops = [],
    devices = {devices},
    logits = "all",
    max_cache_len = {cache},
    model = ":model",
)
"""


class Workspace:
    """A workspace with an output base of its own."""

    def __init__(self, root: Path, folder: Path, weights: Path, cache: int) -> None:
        """Writes it.

        Args:
            root: the checkout of the rules.
            folder: an empty folder.
            weights: the checkpoint's file whose bytes may change, in `folder`/app/checkpoint.
            cache: `max_cache_len` of the model.
        """
        self.root = root
        self.folder = folder / "app"
        self.output_base = folder / "output_base"
        self.weights = weights
        self.events = folder / "events.json"
        (self.folder / "MODULE.bazel").write_text(_MODULE.format(path=json.dumps(str(root))))
        (self.folder / ".bazelrc").write_text("common --lockfile_mode=off\n")
        self.set_cache(cache)

    def set_cache(self, cache: int) -> None:
        """Writes the BUILD file, with an option of the export."""
        text = _BUILD
        for name, (system, processor) in DEVICES.items():
            text += _DEVICE.format(name=json.dumps(name), system=system, processor=processor)
        devices = json.dumps([f":{name}" for name in DEVICES])
        text += _MODEL.format(devices=devices, cache=cache)
        (self.folder / "BUILD.bazel").write_text(text)

    def change_weights(self) -> None:
        """Flips the lowest bit of one byte of the last tensor."""
        with self.weights.open("r+b") as file:
            file.seek(-64, 2)
            (value,) = file.read(1)
            file.seek(-64, 2)
            file.write(bytes([value ^ 1]))

    def bazel(self, *arguments: str) -> float:
        """Runs Bazel; gives seconds.

        Raises:
            RuntimeError: it failed; what it said is above.
        """
        command = [str(self.root / "bazelw"), f"--output_base={self.output_base}", *arguments]
        start = time.perf_counter()
        done = subprocess.run(command, cwd=self.folder, stdout=sys.stderr)
        if done.returncode:
            raise RuntimeError(f"bazel {' '.join(arguments)} failed")
        return time.perf_counter() - start

    def build(self, devices: Sequence[str]) -> tuple[float, Mapping[str, int]]:
        """Builds the programs of devices.

        Returns:
            Seconds, and how many actions of each mnemonic ran.
        """
        targets = [f"//:assistant_{device}" for device in devices]
        seconds = self.bazel(
            "build",
            "--disk_cache=",
            "--remote_cache=",
            "--remote_executor=",
            "--curses=no",
            "--show_progress_rate_limit=30",
            "--output_groups=+timings,+manifest",
            f"--build_event_json_file={self.events}",
            *targets,
        )
        return seconds, self._executed()

    def _executed(self) -> Mapping[str, int]:
        counts = {}
        for line in self.events.read_text().splitlines():
            summary = json.loads(line).get("buildMetrics", {}).get("actionSummary", {})
            for row in summary.get("actionData", []):
                if row["mnemonic"].startswith(("Executorch", "HfModel")):
                    counts[row["mnemonic"]] = int(row.get("actionsExecuted", 0))
        return {mnemonic: count for mnemonic, count in counts.items() if count}

    def forget(self) -> None:
        """Removes what was built, and ends the workers."""
        self.bazel("clean")

    def output(self, device: str, suffix: str) -> Any:
        """A JSON output of a device's program."""
        return json.loads((self.folder / f"bazel-bin/assistant_{device}{suffix}").read_text())


@contextlib.contextmanager
def smollm2_workspace(root: Path, bazelw: Sequence[str]) -> Iterator[Workspace]:
    """A workspace with SmolLM2-135M-Instruct, as one GGUF file of 4-bit weights.

    Args:
        root: the checkout of the rules.
        bazelw: the command that runs Bazel in it.
    """
    label = "@smollm2_135m_gguf//:files"
    quiet = ["--curses=no", "--show_progress_rate_limit=30"]
    subprocess.run([*bazelw, "build", *quiet, label], cwd=root, check=True, stdout=sys.stderr)
    ask = [*bazelw, "cquery", *quiet, "--output=files", label]
    listed = subprocess.run(ask, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    ask = [*bazelw, "info", "execution_root"]
    where = subprocess.run(ask, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    (gguf,) = [line for line in listed.stdout.splitlines() if line.endswith(".gguf")]
    with _workspace() as (folder, checkpoint):
        weights = checkpoint / "model.gguf"
        shutil.copyfile(Path(where.stdout.strip(), gguf), weights)
        weights.chmod(0o644)
        yield from _opened(Workspace(root, folder, weights, 2048))


@contextlib.contextmanager
def small_workspace(root: Path) -> Iterator[Workspace]:
    """A workspace with a tiny Llama of random weights."""
    config = root / "models/tiny/llama/config.json"
    with _workspace() as (folder, checkpoint):
        weights = checkpoint / "model.safetensors"
        command = [sys.executable, str(root / "python/main.py"), "tiny", "--config", str(config)]
        command += ["--out-weights", str(weights)]
        command += ["--out-tokenizer", str(checkpoint / "tokenizer.json")]
        command += ["--out-tokenizer-config", str(checkpoint / "tokenizer_config.json")]
        subprocess.run(command, check=True)
        shutil.copyfile(config, checkpoint / "config.json")
        yield from _opened(Workspace(root, folder, weights, 64))


@contextlib.contextmanager
def _workspace() -> Iterator[tuple[Path, Path]]:
    with guard.temporary_folder("rules_executorch-benchmark-") as folder:
        checkpoint = Path(folder, "app/checkpoint")
        checkpoint.mkdir(parents=True)
        yield Path(folder), checkpoint


def _opened(workspace: Workspace) -> Iterator[Workspace]:
    # Repositories, packages and the server are there before a clock starts.
    workspace.bazel("build", "--nobuild", "--curses=no", "//:assistant")
    try:
        yield workspace
    finally:
        workspace.bazel("shutdown")
