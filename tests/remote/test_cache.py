"""A remote cache: two machines that share work, what is sent there, and what goes wrong.

One cache serves the tests of this file, which run in order.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from builds import ACTIONS, Build, app, build, digests, good, presets
from engines import HttpCache
from nested import Workspace, copy_checkout

ALL_HITS = {"remote cache hit": ACTIONS}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpCache]:
    with HttpCache(tmp_path_factory.mktemp("cache")) as cache:
        yield cache


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A machine."""
    with app(tmp_path_factory.mktemp("here")) as workspace:
        yield workspace


@pytest.fixture(scope="module")
def uploaded(here: Workspace, cache: HttpCache) -> dict[str, str]:
    """What the first machine built and uploaded."""
    assert "remote cache hit" not in good(build(here, *use(cache))).ran
    found = digests(here, *use(cache))
    assert set(found) == {
        "export.json",
        "export.pt2",
        "program.manifest.json",
        "program.pte",
        "program.report.md",
    }
    return found


def use(cache: HttpCache) -> tuple[str, ...]:
    """The options that a person adds."""
    return ("--config=remote_cache", f"--remote_cache={cache.url}")


def wipe(workspace: Workspace) -> None:
    """Removes what was built, and what Bazel knows about it."""
    workspace.bazel("clean")


def test_the_documentation_has_the_presets() -> None:
    assert presets("docs/remote.md") == presets(".bazelrc") != []


def test_nothing_is_executed_a_second_time(
    here: Workspace, cache: HttpCache, uploaded: dict[str, str]
) -> None:
    wipe(here)
    assert good(build(here, *use(cache))).ran == ALL_HITS
    assert digests(here, *use(cache)) == uploaded


def test_nothing_is_sent_twice(here: Workspace, cache: HttpCache, uploaded: dict[str, str]) -> None:
    sent = cache.uploads()
    assert set(uploaded.values()) <= set(sent)
    assert set(sent.values()) == {1}, "the same bytes were sent more than once"
    # The folder of an app is made of links to what is there.
    build_file = here.folder / "BUILD.bazel"
    build_file.write_text(
        build_file.read_text()
        + 'load("@rules_executorch//executorch:defs.bzl", "executorch_assets")\n'
        + 'executorch_assets(name = "assistant", programs = [":program"])\n'
    )
    assert good(build(here, *use(cache), targets=["//:assistant"])).ran == {}
    program = here.output("assistant/model.pte")
    assert hashlib.sha256(program.read_bytes()).hexdigest() == uploaded["program.pte"]
    assert cache.uploads() == sent


def test_another_machine_gets_the_same_with_and_without_the_cache(
    cache: HttpCache, uploaded: dict[str, str], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    checkout = tmp_path / "rules of executorch"
    copy_checkout(checkout)
    env = {"HOME": str(home), "LC_ALL": "C", "PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu"}
    with app(tmp_path / "there", env, checkout) as there:
        lines = [f"build --action_env={name}" for name in env]
        there.settings("\n".join([*lines, ""]))
        assert good(build(there, *use(cache))).ran == ALL_HITS
        assert digests(there, *use(cache)) == uploaded

        wipe(there)
        alone = ("--remote_cache=", "--spawn_strategy=sandboxed")
        assert good(build(there, *alone)).ran == {"linux-sandbox": ACTIONS}
        assert digests(there, *alone) == uploaded


POLICIES = """\
load(
    "@rules_executorch//executorch:defs.bzl",
    "executorch_device",
    "executorch_export",
    "executorch_lower",
    "executorch_model",
    "executorch_release",
    "hf_model",
)

hf_model(name = "model", srcs = glob(["checkpoint/*"]))

executorch_export(name = "export", max_cache_len = 32, model = ":model")

executorch_export(name = "longer", max_cache_len = 48, model = ":model", remote = "no_upload")

executorch_lower(
    name = "program",
    device = "@rules_executorch//executorch/devices:host_x86_64_xnnpack",
    exported = ":export",
)

executorch_lower(
    name = "kept",
    device = "@rules_executorch//executorch/devices:host_x86_64_xnnpack",
    exec_properties = {"Pool": "large"},
    exported = ":longer",
    remote = "no_upload",
)

executorch_model(
    name = "local",
    devices = ["@rules_executorch//executorch/devices:host_x86_64_xnnpack"],
    max_cache_len = 40,
    model = ":model",
    remote = "local",
)

executorch_release(name = "release", programs = [":program"], remote = "local")
"""


def test_weights_and_what_is_to_stay_here_are_not_sent(
    here: Workspace, cache: HttpCache, uploaded: dict[str, str]
) -> None:
    good(build(here, *use(cache), targets=["//:checkpoint"]))
    package = here.folder / "policies"
    shutil.copytree(here.output("checkpoint"), package / "checkpoint")
    weights = package / "checkpoint" / "model.safetensors"
    weights.chmod(0o644)
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    (package / "BUILD.bazel").write_text(POLICIES)
    asked = ["//policies:program", "//policies:kept"]
    built = good(build(here, *use(cache), targets=asked))
    assert hits(built) == 0 and sum(built.ran.values()) == 5
    sent = cache.blobs()
    assert hashlib.sha256(content).hexdigest() not in sent, "weights were sent"

    def digest(name: str) -> str:
        return hashlib.sha256(here.output(f"policies/{name}").read_bytes()).hexdigest()

    assert digest("program.pte") in sent
    for name in ("longer.pt2", "kept.pte", "kept.manifest.json"):
        assert digest(name) not in sent, f"{name} was sent"


def test_what_bazel_is_told_of_a_policy(here: Workspace) -> None:
    kept, local, pool = "no-remote-cache-upload: 1", "no-remote: 1", "Pool: large"
    found = {}
    heavy = "mnemonic('Executorch(Export|Lower|Release)', //policies/...)"
    for action in here.query("aquery", heavy).split("\n\n"):
        for line in action.splitlines():
            if line.startswith("  Target: "):
                target = line.rpartition(":")[2].removesuffix(".shared")
                found[target] = [words for words in (kept, local, pool) if f"{words}" in action]
    expected = {
        "export": [],
        "kept": [kept, pool],
        "local_export": [local],
        "local_lowerings": [local],
        "longer": [kept],
        "program": [],
        "release": [local],
    }
    assert {name: found[name] for name in expected} == expected


ONE_ANEW = ACTIONS - 1

ALL = "--remote_download_outputs=all"
"""Notices what is wrong with a blob while its action can still run: a link to it comes too late."""


def test_a_blob_that_was_corrupted_is_not_taken(
    here: Workspace, cache: HttpCache, uploaded: dict[str, str]
) -> None:
    corrupt(cache, uploaded["program.pte"])
    wipe(here)
    built = good(build(here, *use(cache), ALL))
    assert "Expected digest" in built.text and "does not match received digest" in built.text
    assert hits(built) == ONE_ANEW and sum(built.ran.values()) == ACTIONS
    assert digests(here, *use(cache)) == uploaded


@pytest.mark.parametrize("wrong", ["garbage", "empty", "of another action"])
def test_a_result_that_was_corrupted_is_not_taken(
    here: Workspace, cache: HttpCache, uploaded: dict[str, str], wrong: str
) -> None:
    result, other = (result_with(cache, uploaded[name]) for name in ("program.pte", "export.pt2"))
    sound = result.read_bytes()
    contents = {"garbage": b"\x0a\x05no", "empty": b"", "of another action": other.read_bytes()}
    result.write_bytes(contents[wrong])
    wipe(here)
    built = good(build(here, *use(cache)))
    assert "WARNING: Remote Cache: " in built.text
    assert hits(built) == ONE_ANEW and sum(built.ran.values()) == ACTIONS
    assert digests(here, *use(cache)) == uploaded
    result.write_bytes(sound)


def test_a_blob_that_was_evicted_is_made_again(
    here: Workspace, cache: HttpCache, uploaded: dict[str, str]
) -> None:
    cache.blob(uploaded["program.pte"]).unlink()
    wipe(here)
    built = good(build(here, *use(cache), ALL))
    assert hits(built) == ONE_ANEW and sum(built.ran.values()) == ACTIONS
    assert digests(here, *use(cache)) == uploaded


def test_an_intermediate_that_was_evicted_is_made_again(
    here: Workspace, cache: HttpCache, uploaded: dict[str, str]
) -> None:
    lean = only_export_is_known(here, cache)
    cache.blob(uploaded["export.pt2"]).unlink()
    edit_seed(here, "", "\n    seed = 1,")
    built = good(build(here, *lean, targets=["//:program"]))
    assert "Failed to fetch blobs because they do not exist remotely" in built.text
    edit_seed(here, "\n    seed = 1,", "")
    assert digests(here, *use(cache)) == uploaded


def test_an_intermediate_that_was_corrupted_fails_the_build_until_it_is_made_again(
    here: Workspace, cache: HttpCache, uploaded: dict[str, str]
) -> None:
    lean = only_export_is_known(here, cache)
    corrupt(cache, uploaded["export.pt2"])
    edit_seed(here, "", "\n    seed = 2,")
    built = build(here, *lean, targets=["//:program"])
    assert built.status == 39, built.text
    assert "does not match received digest" in built.text
    assert here.outputs("program.pte") == []

    edit_seed(here, "\n    seed = 2,", "")
    wipe(here)
    good(build(here, *use(cache), ALL))
    assert digests(here, *use(cache)) == uploaded


def test_a_cache_that_dies_is_done_without(
    here: Workspace, uploaded: dict[str, str], tmp_path: Path
) -> None:
    with HttpCache(tmp_path) as cache:

        def dies() -> bool:
            # The export's result is there, and the lowering's is not yet.
            late = len(cache.results()) == ACTIONS - 1
            if late:
                cache.kill()
            return late

        wipe(here)
        built = good(build(here, *use(cache), meanwhile=dies))
        assert "WARNING: Remote Cache: " in built.text
        assert hits(built) == 0 and sum(built.ran.values()) == ACTIONS
        assert digests(here, *use(cache)) == uploaded


def test_a_cache_that_is_not_there_shows_only_in_the_counts(
    here: Workspace, tmp_path: Path
) -> None:
    with HttpCache(tmp_path) as gone:
        gone.kill()
        wipe(here)
        built = good(build(here, *use(gone), targets=["//:checkpoint"]))
        assert hits(built) == 0 and sum(built.ran.values()) == 1
        assert "WARNING: Remote Cache: " in built.text


def hits(built: Build) -> int:
    """How many actions were taken from the cache."""
    return built.ran.get("remote cache hit", 0)


def corrupt(cache: HttpCache, digest: str) -> None:
    """Flips a bit of the last byte of a blob."""
    content = bytearray(cache.blob(digest).read_bytes())
    content[-1] ^= 1
    cache.blob(digest).write_bytes(content)


def result_with(cache: HttpCache, digest: str) -> Path:
    """A result that names a blob."""
    return next(file for file in cache.results() if digest.encode() in file.read_bytes())


def only_export_is_known(here: Workspace, cache: HttpCache) -> tuple[str, ...]:
    """Leaves a machine that knows the export, and has no output; returns its options."""
    wipe(here)
    lean = (*use(cache), "--remote_download_minimal")
    assert good(build(here, *lean, targets=["//:export"])).ran == {"remote cache hit": ACTIONS - 1}
    assert here.outputs("export.pt2") == []
    return lean


def edit_seed(here: Workspace, old: str, new: str) -> None:
    """Gives the checkpoint other weights, and the lowering something to do."""
    line = 'config = "config.json",'
    here.edit("BUILD.bazel", line + old, line + new)
