"""Bazel in Bazel: an app's workspace that uses this checkout as an outside module."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

SHORT_LIVED = """
startup --max_idle_secs=60
startup --host_jvm_args=-XX:TieredStopAtLevel=1
startup --host_jvm_args=-XX:+UseSerialGC
"""
"""Lines of a .bazelrc for a server that lives for minutes: half the processor time."""

# Counted by Bazel in every build, and no work of a target's.
_BOOKKEEPING = {"BazelWorkspaceStatusAction"}


@dataclasses.dataclass(frozen=True)
class Run:
    """A finished Bazel command.

    Attributes:
        status: its exit status.
        text: what it printed.
        executed: how many actions of each mnemonic were executed, not taken from a cache.
    """

    status: int
    text: str
    executed: Mapping[str, int]

    def refusal(self, label: str) -> str:
        """The sentences with which a target was refused, on one line."""
        found = re.search(
            rf"^ERROR in {re.escape(label)}: (.*?)\n(?=\n|ERROR)",
            self.text,
            re.DOTALL | re.MULTILINE,
        )
        assert found, f"{label} was not refused:\n{self.text}"
        return " ".join(found[1].split())


class Workspace:
    """A copy of a workspace below `e2e` with an output base of its own."""

    def __init__(
        self,
        folder: Path,
        output_base: Path,
        checkout: Path = CHECKOUT,
        env: Mapping[str, str] | None = None,
        example: str = "smoke",
    ) -> None:
        """Copies the workspace.

        Args:
            folder: where to; made.
            output_base: of its Bazel server.
            checkout: the ruleset.
            env: variables on top of those of this process.
            example: its folder below `e2e`.
        """
        self.folder = folder
        self.output_base = output_base
        self.bazelw = checkout / "bazelw"
        self.events = output_base.with_name(output_base.name + ".events.json")
        self.env = environment() | dict(env or {})
        shutil.copytree(
            CHECKOUT / "e2e" / example, folder, ignore=shutil.ignore_patterns("bazel-*")
        )
        self.edit("MODULE.bazel", '"../.."', json.dumps(str(checkout)))
        self.settings(SHORT_LIVED)

    def settings(self, lines: str) -> None:
        """Adds lines to the workspace's .bazelrc."""
        with (self.folder / ".bazelrc").open("a") as file:
            file.write(lines)

    def edit(self, name: str, old: str, new: str) -> None:
        """Replaces the one occurrence of a text in a file."""
        path = self.folder / name
        text = path.read_text()
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {name}"
        path.write_text(text.replace(old, new))

    def command(self, *arguments: str) -> list[str]:
        """The command line of a Bazel command."""
        name, *rest = arguments
        more = []
        if name in ("build", "test", "run"):
            more = [
                f"--build_event_json_file={self.events}",
                "--color=no",
                "--curses=no",
                "--show_progress_rate_limit=1",
            ]
        return [
            str(self.bazelw),
            f"--output_base={self.output_base}",
            name,
            *more,
            *rest,
        ]

    def bazel(self, *arguments: str, ok: bool = True) -> Run:
        """Runs Bazel, and fails the test if it does not end as it should."""
        self.events.unlink(missing_ok=True)
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert (done.returncode == 0) is ok, done.stdout
        return Run(done.returncode, done.stdout, self._executed())

    def _executed(self) -> Mapping[str, int]:
        counts: collections.Counter[str] = collections.Counter()
        if self.events.exists():
            for line in self.events.read_text().splitlines():
                summary = json.loads(line).get("buildMetrics", {}).get("actionSummary", {})
                for row in summary.get("actionData", []):
                    if row["mnemonic"] not in _BOOKKEEPING:
                        counts[row["mnemonic"]] += int(row.get("actionsExecuted", 0))
        return +counts

    def outputs(self, pattern: str) -> list[Path]:
        """Files below the folder of outputs that match a glob, in whatever configuration.

        A link that an earlier build left to a file that is no longer there is none of them.
        """
        found = (self.folder / "bazel-out").glob(f"*/bin/{pattern}")
        return sorted(path for path in found if path.exists())

    def output(self, pattern: str) -> Path:
        """The one file or folder that matches a glob, in `bazel-bin` or where an action left it."""
        found = list((self.folder / "bazel-bin").glob(pattern)) or self.outputs(pattern)
        assert len(found) == 1, f"{pattern}: {found}"
        return found[0]

    def digests(self, targets: Sequence[str], *options: str) -> dict[str, str]:
        """sha256 of the files of targets, with their manifests, by file name."""
        options = ("--output_groups=+manifest,+report", *options)
        self.bazel("build", *options, *targets)
        listed = self.query("cquery", *options, "--output=files", " + ".join(targets))
        files = [self.folder / line for line in listed.splitlines()]
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

    def query(self, *arguments: str) -> str:
        """What a command that builds nothing prints."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def shutdown(self) -> None:
        """Ends the server and its workers."""
        subprocess.run(
            self.command("shutdown"),
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            check=False,
        )


def eager_argmax(checkpoint: Path, tokens: Sequence[int]) -> int:
    """The token that the model of a checkpoint gives the largest logit to after others."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(checkpoint, local_files_only=True).eval()
    with torch.no_grad():
        logits = model(torch.tensor([list(tokens)])).logits
    return int(logits[0, -1].argmax())


def environment() -> dict[str, str]:
    """The variables of a person's shell: those of this test without what Bazel added."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BAZEL_", "BUILD_", "PYTHON", "RUNFILES", "TEST", "XML_"))
    }
    env["RULES_EXECUTORCH_CACHE"] = str(cache())
    return env


def cache() -> Path:
    """The folder with the private Bazel and the toolchain, as bazelw finds it."""
    if os.environ.get("RULES_EXECUTORCH_CACHE"):
        return Path(os.environ["RULES_EXECUTORCH_CACHE"])
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"], "rules_executorch")
    return Path(os.environ["HOME"], ".cache", "rules_executorch")


def copy_checkout(folder: Path) -> None:
    """Copies this checkout, without its history and what was built in it."""
    shutil.copytree(
        CHECKOUT,
        folder,
        ignore=shutil.ignore_patterns(".git", "bazel-*", "__pycache__", ".ruff_cache"),
        symlinks=True,
    )
