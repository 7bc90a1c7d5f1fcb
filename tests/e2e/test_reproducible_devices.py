"""The same bytes for every device that lowers here, from a build where all else is different.

The build that runs this test has made the programs once, in workers; a copy of the checkout makes
them again, in cold processes.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from nested import SHORT_LIVED, Run, Workspace, copy_checkout, environment

# Not resolved: the checkout has the sources alone.
RUNFILES = Path(__file__).parents[2]
TARGET = "//tests/devices:artifacts"


class Checkout(Workspace):
    """This ruleset itself, elsewhere, for someone who has set everything otherwise."""

    def __init__(self, folder: Path, output_base: Path, variables: dict[str, str]) -> None:
        copy_checkout(folder)
        (folder / "user.bazelrc").open("a").write(SHORT_LIVED)
        self.folder = folder
        self.output_base = output_base
        self.bazelw = folder / "bazelw"
        self.events = output_base.with_name(output_base.name + ".events.json")
        self.env = environment() | variables


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    folder = tmp_path_factory.mktemp("there") / "a folder #2"
    home = folder.parent / "home"
    home.mkdir(parents=True)
    variables = {
        "HOME": str(home),
        "LC_ALL": "C",
        "OMP_NUM_THREADS": "3",
        "PYTHONHASHSEED": "7",
        "TZ": "Pacific/Chatham",
    }
    checkout = Checkout(folder / "rules", folder.parent / "output_base", variables)
    with (checkout.folder / "user.bazelrc").open("a") as file:
        file.write("build --spawn_strategy=sandboxed --jobs=3 --compilation_mode=opt\n")
        file.writelines(f"build --action_env={name}\n" for name in variables)
    before = os.umask(0o077)
    yield checkout
    os.umask(before)
    checkout.shutdown()


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def built(there: Checkout) -> Run:
    run = there.bazel("build", TARGET)
    lowered = run.executed["ExecutorchLower"]
    assert lowered >= 14, f"{lowered} programs were lowered:\n{run.text}"
    return run


@pytest.fixture(scope="module")
def digests(there: Checkout, built: Run) -> dict[str, tuple[str, str]]:
    """Path below the folder of outputs: digest here, digest there."""
    found = {}
    for line in there.query("cquery", "--output=files", TARGET).splitlines():
        name = line.split("/bin/", 1)[1]
        found[name] = (digest(RUNFILES / name), digest(there.folder / line))
    return found


def test_every_artifact_is_compared(digests: dict[str, tuple[str, str]]) -> None:
    suffixes = {Path(name).suffix for name in digests}
    assert {".pte", ".ptd", ".json", ".md", ".tar"} <= suffixes
    assert sum(name.endswith(".pte") for name in digests) >= 16
    assert "tests/apps/assets/model.pte" in digests, "no folder for an app"


def test_the_bytes_are_the_same(digests: dict[str, tuple[str, str]]) -> None:
    different = sorted(name for name, (here, there) in digests.items() if here != there)
    assert different == []


def test_no_action_has_anything_to_say(built: Run) -> None:
    assert re.findall("^INFO: From (.*)", built.text, re.MULTILINE) == []
