"""The module extension `huggingface` and the lock tool, in a workspace of their own.

One Bazel server serves all tests of this file, which run in order: the first locks and builds a
model as a user would, the following ones change something and look at what was fetched.
"""

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from fake_hub import FakeHub, Fault, Repo
from nested import SHORT_LIVED

from rules_executorch.hub.lockfile import LockedFile, LockedModel, update

TOKEN = "hf_secretsecretsecret"
ROOT = Path(__file__).resolve().parents[2]

FILES = {
    "config.json": b'{"model_type": "llama"}',
    "model.safetensors": b"weights" * 100_000,
    "onnx/config.json": b"{}",
    "with space/a b (1).txt": b"text",
    "files": b"a file with the name of the group",
    "README.md": b"card",
    "copy/README.txt": b"card",
}

# What is fetched of them: one path of each content.
CONTENTS = sorted(set(FILES) - {"copy/README.txt"})

# An action that reads every file of a model, whatever its name.
DIGESTS_BZL = """\
def _digests_impl(ctx):
    out = ctx.actions.declare_file("digests.txt")
    ctx.actions.run_shell(
        inputs = ctx.files.srcs,
        outputs = [out],
        arguments = [ctx.actions.args().add(out).add_all(ctx.files.srcs)],
        command = "out=$1; shift; sha256sum -- \\"$@\\" > \\"$out\\"",
    )
    return [DefaultInfo(files = depset([out]))]

digests = rule(
    implementation = _digests_impl,
    attrs = {"srcs": attr.label_list(allow_files = True)},
)
"""


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Workspace:
    """A user's workspace with models, and the Bazel that builds it."""

    def __init__(self, folder: Path, hub: FakeHub) -> None:
        self.root = folder / "app"
        self.output_base = folder / "output_base"
        self.cache = folder / "repository_cache"
        self.hub = hub
        self.env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HF_", "BUILD_", "TEST_", "RUNFILES", "PYTHON"))
            and not name.lower().endswith("_proxy")
        }
        self.env |= {"NETRC": str(folder / "netrc"), "HF_ENDPOINT": hub.endpoint}
        (self.root / "models").mkdir(parents=True)
        (self.root / "models" / "BUILD.bazel").touch()
        (self.root / ".bazelrc").write_text(SHORT_LIVED)
        self.lock = self.root / "models" / "hf.lock.json"
        self.models: dict[str, str] = {}

    def model(self, name: str, revision: str, repo: str = "o/m", more: str = "") -> None:
        """Declares a model in MODULE.bazel."""
        self.models[name] = (
            f'huggingface.model(name = "{name}", repo = "{repo}", revision = "{revision}",'
            f' lock = "//models:hf.lock.json"{more})\nuse_repo(huggingface, "{name}")\n'
        )
        (self.root / "MODULE.bazel").write_text(
            'module(name = "app")\n'
            'bazel_dep(name = "rules_executorch")\n'
            f'local_path_override(module_name = "rules_executorch", path = "{ROOT}")\n'
            "huggingface = use_extension("
            '"@rules_executorch//executorch:extensions.bzl", "huggingface")\n'
            + "".join(self.models.values())
        )

    def locked(self, name: str, files: dict[str, bytes], repo: str = "o/m", **model: str) -> str:
        """Declares a model and writes its lock entry without the tool; returns its revision."""
        revision = model.get("revision") or self.hub.repos[repo].commit(files)
        entries = {
            path: LockedFile(len(data), sha256(data), path.endswith(".safetensors"))
            for path, data in files.items()
        }
        update(str(self.lock), name, LockedModel(repo, revision, (), (), entries))
        self.model(name, revision, repo)
        return revision

    def bazel(self, command: str, *arguments: str, ok: bool = True, **env: str) -> str:
        """Runs Bazel; returns what it printed, in which the token never is."""
        done = subprocess.run(
            [ROOT / "bazelw", f"--output_base={self.output_base}", command]
            + [f"--repository_cache={self.cache}", *arguments],
            cwd=self.root,
            env=self.env | env,
            capture_output=True,
            text=True,
        )
        text = done.stdout + done.stderr
        assert TOKEN not in text
        assert (done.returncode == 0) is ok, text
        return text

    def refusal(self, name: str, **env: str) -> str:
        """The sentences with which a build of a model fails; nothing of its file is left."""
        text = self.bazel(
            "build", f"@{name}//:files", "--http_connector_attempts=1", ok=False, **env
        )
        assert "Traceback" in text, "the refusal is a failure of Starlark"
        sentences = " ".join(re.search(r"\n(ERROR in .*?)\n\n", text, re.DOTALL)[1].split())
        external = self.output_base / "external"
        assert not [
            f for f in external.glob("*huggingface_*/*.safetensors") if f.stat().st_size == 0
        ]
        return sentences

    def lock_as_told(self, text: str, *more: str) -> None:
        """Runs the command that an error prints."""
        line = re.search(r"^ +bazel run @rules_executorch//tools:lock -- .*$", text, re.MULTILINE)[
            0
        ]
        words = shlex.split(line)
        assert words[:2] == ["bazel", "run"]
        self.bazel("run", *words[2:], *more)

    def digests(self, name: str) -> dict[str, str]:
        """Builds a target from `@name//:files`; returns the digests that it saw, by file."""
        (self.root / "digests.bzl").write_text(DIGESTS_BZL)
        (self.root / "BUILD.bazel").write_text(
            'load(":digests.bzl", "digests")\n'
            f'digests(name = "digests", srcs = ["@{name}//:files"])\n'
        )
        self.bazel("build", "//:digests")
        lines = (self.root / "bazel-bin" / "digests.txt").read_text().splitlines()
        pairs = [line.split(maxsplit=1) for line in lines]
        contents, others = {}, []
        for digest, path in pairs:
            _, *name = re.split(r"huggingface_[0-9a-f]{64}/", path)
            if name:
                contents[name[0]] = digest
            else:
                others.append(path)
        # The one file that is not of the model says where the others come from.
        assert [Path(path).name for path in others] == ["huggingface.json"]
        return contents


@pytest.fixture(scope="module")
def hub():
    with FakeHub() as hub:
        hub.repos["o/m"] = Repo()
        yield hub


@pytest.fixture(scope="module")
def workspace(hub, tmp_path_factory):
    workspace = Workspace(tmp_path_factory.mktemp("hub"), hub)
    yield workspace
    workspace.bazel("shutdown")
    for folder, _, _ in os.walk(workspace.output_base):
        with contextlib.suppress(OSError):
            os.chmod(folder, 0o755)
    shutil.rmtree(workspace.output_base, ignore_errors=True)


@pytest.fixture(autouse=True)
def clean(hub, workspace):
    hub.faults.clear()
    hub.log.clear()
    hub.tokens.clear()
    hub.repos["o/m"].gated = hub.repos["o/m"].private = False
    Path(workspace.env["NETRC"]).unlink(missing_ok=True)


def test_an_unlocked_model_says_how_to_lock_it(hub, workspace):
    """The printed command locks; then the model builds, every file under its own name."""
    revision = hub.repos["o/m"].commit(FILES)
    workspace.model("m", revision)
    text = workspace.bazel("build", "@m//:files", ok=False)
    assert 'ERROR in huggingface.model(name = "m"): The lock file //models:hf.lock.json' in text
    workspace.lock_as_told(text)
    assert "model.safetensors" not in hub.fetched()
    hub.log.clear()
    assert workspace.digests("m") == {path: sha256(data) for path, data in FILES.items()}
    assert hub.fetched() == CONTENTS
    text = workspace.bazel("cquery", "--output=files", "@m//:huggingface.json")
    path = next(line for line in text.splitlines() if line.endswith("/huggingface.json"))
    source = json.loads((workspace.output_base / path).read_text())
    assert source == {"repo": "o/m", "revision": revision}


def test_every_file_is_a_target(hub, workspace):
    text = workspace.bazel("query", "--output=label", "kind(rule, @m//:all)")
    for path in FILES:
        assert f"@m//:{path}\n" in text
    workspace.bazel("build", "@m//:with space/a b (1).txt", "@m//:onnx/config.json")
    assert not hub.log


def test_an_edit_of_a_small_file_fetches_that_file(hub, workspace):
    """Also without a repository cache: what did not change is not even looked at again."""
    edited = FILES | {"config.json": b'{"model_type": "gemma"}'}
    revision = hub.repos["o/m"].commit(edited)
    workspace.model("m", revision)
    text = workspace.bazel("build", "@m//:files", ok=False)
    assert f"and MODULE.bazel wants {revision}" in text
    workspace.lock_as_told(text)
    hub.log.clear()
    shutil.rmtree(workspace.cache)
    assert workspace.digests("m")["config.json"] == sha256(edited["config.json"])
    assert hub.fetched() == ["config.json"]


def test_other_patterns_make_a_lock_stale(hub, workspace):
    revision = hub.repos["o/m"].branches["main"]
    workspace.model("some", revision, more=', include = ["*.json", "*.md"], exclude = ["onnx/"]')
    workspace.lock_as_told(workspace.bazel("build", "@some//:files", ok=False))
    hub.log.clear()
    text = workspace.bazel("cquery", "--output=files", "@some//:files")
    assert text.count("config.json") == 1 and "README.md" in text and "safetensors" not in text
    assert not hub.fetched(), "two models share these files"

    workspace.model("some", revision, more=', include = ["*"]')
    text = workspace.bazel("build", "@some//:files", ok=False)
    assert "was written for include" in text
    assert "--name some --repo o/m" in text and "'--include=*'" in text
    workspace.bazel("build", "@m//:files")
    del workspace.models["some"]


def test_an_offline_build_takes_everything_from_the_repository_cache(hub, workspace):
    workspace.bazel("fetch", "--force", "@m//:files")
    workspace.bazel("clean", "--expunge")
    hub.log.clear()
    workspace.bazel("build", "@m//:files", HF_ENDPOINT="http://127.0.0.1:9")
    assert not hub.log


def test_a_gated_model_and_its_tokens(hub, workspace):
    hub.repos["o/m"].gated = True
    files = {"config.json": b"gated", "model.safetensors": b"gated weights"}
    workspace.locked("gated", files)
    text = workspace.refusal("gated")
    assert "o/m is gated, and the request came without a token (401)" in text
    assert f"Accept its conditions at {hub.endpoint}/o/m" in text

    text = workspace.refusal("gated", HF_TOKEN=TOKEN)
    assert "refuses the token in the variable HF_TOKEN (401)" in text

    hub.tokens[TOKEN] = set()
    text = workspace.refusal("gated", HF_TOKEN=TOKEN)
    assert "the account of the token in the variable HF_TOKEN has no access to it (403)" in text

    hub.tokens[TOKEN] = {"o/m"}
    workspace.bazel("build", "@gated//:files", HF_TOKEN=TOKEN)
    assert f"Bearer {TOKEN}" in hub.seen_by("hub")
    assert not hub.seen_by("cdn")

    hub.log.clear()
    workspace.bazel("build", "@gated//:files")
    assert not hub.log, "a token that comes or goes fetches nothing again"


def test_the_netrc_file_opens_a_private_model(hub, workspace):
    hub.repos["o/m"].private = True
    hub.tokens[TOKEN] = {"o/m"}
    workspace.locked("private", {"config.json": b"private", "model.safetensors": b"private too"})
    text = workspace.refusal("private")
    assert "no public repository o/m (401)" in text
    Path(workspace.env["NETRC"]).write_text(f"machine 127.0.0.1 login me password {TOKEN}\n")
    workspace.bazel("build", "@private//:files")
    assert not hub.seen_by("cdn")


def test_a_credential_helper_opens_a_private_model(hub, workspace, tmp_path):
    hub.repos["o/m"].private = True
    hub.tokens[TOKEN] = {"o/m"}
    helper = tmp_path / "helper"
    answer = f'{{"headers": {{"Authorization": ["Bearer {TOKEN}"]}}}}'
    helper.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{answer}'\n")
    helper.chmod(0o755)
    workspace.locked("helped", {"config.json": b"helped", "model.safetensors": b"helped too"})
    workspace.bazel("build", "@helped//:files", f"--credential_helper=127.0.0.1={helper}")
    assert not hub.seen_by("cdn")


def test_a_hostile_redirect_gets_no_token(hub, workspace):
    hub.tokens[TOKEN] = {"o/m"}
    workspace.locked("stolen", {"model.safetensors": b"to be stolen"})
    hub.faults["/resolve/"] = Fault("redirect", location=f"{hub.cdn}/give-me-your-token")
    text = workspace.refusal("stolen", HF_TOKEN=TOKEN)
    assert "what arrives is not the locked file" in text
    assert any(request.server == "cdn" for request in hub.log)
    assert not hub.seen_by("cdn")


def test_the_token_is_in_no_file(workspace):
    """After all the builds with a token above."""
    found = subprocess.run(
        ["grep", "-rlF", TOKEN, workspace.output_base, workspace.root, workspace.cache],
        capture_output=True,
        text=True,
    )
    assert found.returncode == 1, found.stdout + found.stderr


def test_a_mirror_serves_everything(hub, workspace):
    files = {"config.json": b"mirrored", "model.safetensors": b"mirrored too"}
    workspace.locked("mirrored", files)
    workspace.bazel("build", "@mirrored//:files", HF_ENDPOINT=f"{hub.endpoint}/mirror/")
    assert hub.fetched() == sorted(files)
    asked = [request.path for request in hub.log if "/resolve/" in request.path]
    assert all(path.startswith("/mirror/o/m/") for path in asked)


def test_a_content_is_taken_from_the_model_that_can_be_read(hub, workspace):
    """A gated repository and a public one have the same file."""
    data = {"model.safetensors": b"in two repositories"}
    hub.repos["o/public"] = Repo()
    hub.repos["o/m"].gated = True
    workspace.locked("first", data)
    workspace.locked("second", data, repo="o/public")
    workspace.bazel("build", "@first//:files", "@second//:files")
    assert len([request for request in hub.log if request.server == "cdn"]) == 1


def test_a_wrong_hash_is_refused_at_once(hub, workspace):
    workspace.locked("altered", {"model.safetensors": b"altered"})
    hub.faults["/blobs/"] = Fault("corrupt")
    text = workspace.refusal("altered")
    assert "what arrives is not the locked file" in text and sha256(b"altered") in text
    assert len([r for r in hub.log if r.server == "cdn"]) == 1


def test_a_truncated_download_is_tried_again_and_then_refused(hub, workspace):
    data = b"truncated" * 10_000
    workspace.locked("cut", {"model.safetensors": data})
    hub.faults["/blobs/"] = Fault("truncate")
    assert "broke off every time" in workspace.refusal("cut")
    digest = sha256(data)
    assert not list(
        (workspace.output_base / "external").glob(f"*huggingface_{digest}/*.safetensors")
    )
    hub.faults["/blobs/"] = Fault("truncate", times=2)
    workspace.bazel("build", "@cut//:files")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            Fault("status", status=429, headers={"Retry-After": "77"}),
            ["limits the rate of requests (429)", "in 77 seconds", "HF_TOKEN"],
        ),
        (
            Fault("status", status=429, headers={"RateLimit": '"resolvers";r=0;t=55'}),
            ["limits the rate of requests (429)", "in 55 seconds"],
        ),
        (Fault("status", status=403), ["forbids reading model.safetensors of o/m (403)"]),
        (Fault("status", status=503), ["The hub has a fault (503)", "HF_ENDPOINT"]),
        (Fault("status", status=418), ["answers 418"]),
        (
            Fault("status", status=404, headers={"X-Error-Code": "EntryNotFound"}),
            ["model.safetensors of o/m is not on the hub (404)"],
        ),
        (
            Fault("status", status=404, headers={"X-Error-Code": "RevisionNotFound"}),
            ["o/m has no revision"],
        ),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Fault) else "",
)
def test_statuses(hub, workspace, fault, words):
    workspace.locked("status", {"model.safetensors": f"status {fault}".encode()})
    hub.faults["/resolve/"] = fault
    text = workspace.refusal("status")
    for word in words:
        assert word in text


def test_no_connection(hub, workspace):
    workspace.locked("far", {"model.safetensors": b"far"})
    text = workspace.refusal("far", HF_ENDPOINT="http://127.0.0.1:9")
    assert "no connection to http://127.0.0.1:9" in text
    text = workspace.refusal("far", HF_ENDPOINT=f"http://me:{TOKEN}@127.0.0.1:9")
    assert "HF_ENDPOINT has a user name or password in it" in text
    text = workspace.refusal("far", HF_ENDPOINT="127.0.0.1:9")
    assert "HF_ENDPOINT is not the base URL of a hub" in text


@pytest.mark.parametrize(
    ("revision", "more", "words"),
    [
        ("main", "", ["not a commit of 40", "--revision main", "--lock //models:hf.lock.json"]),
        ("A" * 40, "", ["not a commit of 40 lower-case"]),
        ("a" * 40, ', include = ["[a].json"]', ["has brackets"]),
    ],
)
def test_mistakes_in_module_bazel(workspace, revision, more, words):
    workspace.model("wrong", revision, more=more)
    text = workspace.bazel("build", "@wrong//:files", ok=False)
    for word in words:
        assert word in text
    del workspace.models["wrong"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"config.json"', '"../../config.json"'), "is not a plain relative path"),
        (('"config.json"', '"sub/BUILD"'), "package boundary"),
        (('"sha256": "', '"sha256": "x'), "no sha256 of 64"),
        (('"schema_version": 1', '"schema_version": 9'), "schema_version 9"),
        (("{", "{,"), "is not readable"),
    ],
)
def test_a_lock_file_is_not_trusted(workspace, change, words):
    workspace.models.clear()
    workspace.lock.unlink()
    workspace.locked("bad", {"config.json": b"{}"})
    workspace.lock.write_text(workspace.lock.read_text().replace(*change))
    text = workspace.bazel("build", "@bad//:files", ok=False)
    assert words in text and "bazel run @rules_executorch//tools:lock -- --name bad" in text
