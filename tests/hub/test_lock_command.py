"""The `lock` command against a local hub: listing, hashing, errors in words, and the token."""

import ast
import hashlib
import json
import time
from pathlib import Path

import pytest
from fake_hub import FakeHub, Fault, Repo

from rules_executorch import cli
from rules_executorch.hub import client, patterns

TOKEN = "hf_secretsecretsecret"

FILES = {
    "config.json": b'{"model_type": "llama"}',
    "model.safetensors": b"weights" * 1000,
    "onnx/model.onnx": b"onnx",
    "with space/a b.txt": b"text",
    "README.md": b"card",
    "empty.txt": b"",
}


@pytest.fixture
def hub(monkeypatch, tmp_path):
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "BUILD_WORKSPACE_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("BUILD_WORKING_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with FakeHub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint + "/")
        hub.repos["o/m"] = Repo()
        hub.repos["o/m"].commit(FILES)
        yield hub


@pytest.fixture
def lock(tmp_path, capfd):
    """Runs the command; returns its status and everything it printed."""

    def run(*arguments: str, repo: str = "o/m") -> tuple[int, str]:
        status = cli.main(
            ["lock", "--repo", repo, "--lock", "model.lock.json", "--name", "m", *arguments]
        )
        printed = capfd.readouterr()
        text = printed.out + printed.err
        assert TOKEN not in text and "Traceback" not in text
        return status, text

    run.path = tmp_path / "model.lock.json"
    return run


def entry(lock, name="m"):
    return json.loads(lock.path.read_text())["models"][name]


def test_every_page_is_listed_and_every_digest_is_right(hub, lock):
    status, text = lock()
    assert status == 0, text
    written = entry(lock)
    assert written["revision"] == hub.repos["o/m"].branches["main"]
    assert f"main of o/m is {written['revision']}" in text
    assert written["files"] == {
        path: {
            "sha256": hashlib.sha256(data).hexdigest(),
            "size": len(data),
            "lfs": path.endswith(".safetensors"),
        }
        for path, data in FILES.items()
    }
    assert sum("/tree/" in request.path for request in hub.log) > 3, "the listing has pages"
    assert "model.safetensors" not in hub.fetched(), "large-file storage is not downloaded"
    assert 'use_repo(huggingface, "m")' in text


def test_the_lock_file_is_canonical_and_keeps_other_models(hub, lock):
    lock("--include", "*.json", "--include", "*.safetensors", "--exclude", "onnx/")
    lock("--name", "other", "--include", "*.md")
    first = lock.path.read_bytes()
    assert sorted(json.loads(first)["models"]) == ["m", "other"]
    status, text = lock("--include=*.safetensors", "--include=*.json", "--exclude=onnx/")
    assert status == 0 and "as before" in text
    assert lock.path.read_bytes() == first, "the order of patterns does not matter"
    assert sorted(entry(lock)["files"]) == ["config.json", "model.safetensors"]


def test_a_commit_is_taken_as_it_is(hub, lock):
    old = hub.repos["o/m"].branches["main"]
    hub.repos["o/m"].commit(FILES | {"config.json": b"{}"})
    status, text = lock("--revision", old)
    assert status == 0 and "this commit is locked" not in text
    assert entry(lock)["revision"] == old
    assert entry(lock)["files"]["config.json"]["size"] == len(FILES["config.json"])


def test_default_name_and_label(hub, tmp_path, monkeypatch, capfd):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "BUILD.bazel").touch()
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    hub.repos["o/Small-LM2.1"] = Repo()
    hub.repos["o/Small-LM2.1"].commit({"config.json": b"{}"})
    assert cli.main(["lock", "--repo", "o/Small-LM2.1", "--lock", "//models:hf.lock.json"]) == 0
    assert 'lock = "//models:hf.lock.json"' in capfd.readouterr().out
    written = json.loads((tmp_path / "models" / "hf.lock.json").read_text())
    assert list(written["models"]) == ["small_lm2_1"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"repo": "o/none"}, ["no public repository o/none", "HF_TOKEN"]),
        ({"repo": "o/m", "revision": "v9"}, ["o/m has no revision v9", "commits/main"]),
        ({"include": "*.gguf"}, ["None of the 6 files", "README.md"]),
        ({"include": "[ab].json"}, ["brackets", "only * and ?"]),
        ({"lock": "no/folder/x.json"}, ["folder", "does not exist"]),
        ({"repo": "a/b/c"}, ["a/b/c is not the name of a repository", "owner/name"]),
    ],
)
def test_mistakes(hub, lock, arguments, words):
    repo = arguments.pop("repo", "o/m")
    status, text = lock(*[f"--{k}={v}" for k, v in arguments.items()], repo=repo)
    assert status == 1
    for word in words:
        assert word in text
    assert not lock.path.exists()


def test_gated_without_a_token_with_the_wrong_one_and_with_a_right_one(hub, lock, monkeypatch):
    hub.repos["o/m"].gated = True
    status, text = lock()
    assert status == 1 and "o/m is gated, and there is no token (401)" in text
    assert f"{hub.endpoint}/o/m" in text

    monkeypatch.setenv("HF_TOKEN", TOKEN)
    status, text = lock()
    assert status == 1 and "refuses the token (401)" in text

    hub.tokens[TOKEN] = set()
    status, text = lock()
    assert status == 1 and "the token's account has no access to it (403)" in text

    hub.tokens[TOKEN] = {"o/m"}
    status, text = lock()
    assert status == 0, text


def test_the_netrc_file_gives_the_token(hub, lock, tmp_path):
    (tmp_path / "netrc").write_text(f"default login me password {TOKEN}\n")
    lock()
    assert not hub.seen_by("hub"), "an entry for any host is for other hosts"
    (tmp_path / "netrc").write_text(f"machine 127.0.0.1 login me password {TOKEN}\n")
    hub.tokens[TOKEN] = {"o/m"}
    hub.repos["o/m"].private = True
    status, text = lock()
    assert status == 0, text
    assert set(hub.seen_by("hub")) == {f"Bearer {TOKEN}"}


def test_a_redirect_to_another_host_never_gets_the_token(hub, lock, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.tokens[TOKEN] = {"o/m"}
    hub.faults["/resolve/"] = Fault("redirect", location=hub.cdn + "/give-me-your-token")
    status, text = lock()
    assert status == 1 and "refuses" in text
    assert any(request.server == "cdn" for request in hub.log)
    assert not hub.seen_by("cdn")


def test_a_next_page_on_another_host_never_gets_the_token(hub, lock, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.tokens[TOKEN] = {"o/m"}
    monkeypatch.setattr(FakeHub, "endpoint", property(lambda self: self.cdn))
    status, _ = lock()
    assert status == 1
    assert any(request.server == "cdn" and "/tree/" in request.path for request in hub.log)
    assert not hub.seen_by("cdn")


def test_a_rate_limit_is_waited_for(hub, lock, monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    hub.faults["/tree/"] = Fault("status", times=2, status=429, headers={"Retry-After": "7"})
    hub.faults["/resolve/"] = Fault("status", times=1, status=429, headers={"Retry-After": "3"})
    status, text = lock()
    assert status == 0, text
    assert "waiting 7 s" in text and "waiting 3 s" in text
    assert sum(slept) >= 7 + 7 + 3


def test_a_rate_limit_beyond_patience_is_a_sentence(hub, lock):
    hub.faults["/api/models"] = Fault("status", status=429, headers={"Retry-After": "86400"})
    status, text = lock()
    assert status == 1 and "(429): wait 86400 s." in text
    assert len(hub.log) == 1

    hub.faults["/api/models"] = Fault(
        "status", status=429, headers={"RateLimit": '"api";r=0;t=999'}
    )
    status, text = lock()
    assert status == 1 and "(429): wait 999 s." in text

    hub.faults["/api/models"] = Fault("status", status=503, headers={"Retry-After": "3600"})
    status, text = lock()
    assert status == 1 and "(503): wait 3600 s." in text

    hub.faults["/api/models"] = Fault("status", status=429)
    status, text = lock()
    assert status == 1 and "limits the rate of requests (429)" in text


def test_a_truncated_file_is_fetched_again(hub, lock):
    hub.faults["resolve-cache/models/o/m"] = Fault("truncate", times=2)
    status, text = lock()
    assert status == 0 and "broke off" in text
    digest = hashlib.sha256(FILES["README.md"]).hexdigest()
    assert entry(lock)["files"]["README.md"]["sha256"] == digest


def test_a_file_that_never_arrives_whole_leaves_no_lock(hub, lock):
    hub.faults["resolve-cache/models/o/m"] = Fault("truncate")
    status, text = lock()
    assert status == 1 and "broke off every time" in text
    assert not lock.path.exists()


def test_an_altered_file_is_refused(hub, lock):
    hub.faults["config.json"] = Fault("corrupt")
    status, text = lock()
    assert status == 1 and "serves as config.json is not what its listing names" in text
    assert not lock.path.exists()


def test_a_file_that_vanishes_and_a_server_fault(hub, lock):
    hub.faults["/resolve/"] = Fault(
        "status", times=1, status=404, headers={"X-Error-Code": "EntryNotFound"}
    )
    status, text = lock()
    assert status == 1 and "README.md of o/m is not at revision" in text
    hub.faults["/resolve/"] = Fault("status", status=500)
    status, text = lock()
    assert status == 1 and "The hub has a fault (500)" in text


def test_a_mirror_below_a_path(hub, lock, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", f"{hub.endpoint}/mirror")
    status, text = lock()
    assert status == 0, text
    assert hub.log[0].path.startswith("/mirror/api/")


def test_no_connection_and_no_hub(hub, lock, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    status, text = lock()
    assert status == 1 and "no connection to http://127.0.0.1:9" in text
    monkeypatch.setenv("HF_ENDPOINT", f"{hub.cdn}/somewhere")
    hub.faults["somewhere"] = Fault("status", status=200)
    status, text = lock()
    assert status == 1 and "does not answer as a hub does" in text


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        (f"http://me:{TOKEN}@127.0.0.1", "has a user name or password in it"),
        ("hub.example", "not the base URL"),
        ("file:///etc", "not the base URL"),
    ],
)
def test_wrong_endpoints(hub, lock, monkeypatch, endpoint, words):
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    status, text = lock()
    assert status == 1 and words in text


def test_offline_mode_is_named(hub, lock, monkeypatch):
    monkeypatch.setattr(client.constants, "HF_HUB_OFFLINE", True)
    status, text = lock()
    assert status == 1 and "HF_HUB_OFFLINE" in text


@pytest.mark.parametrize("name", ["sub/BUILD", "naïve.json", "a:b", "../escape", "WORKSPACE"])
def test_names_that_bazel_cannot_have(hub, lock, name):
    hub.repos["o/m"].commit(FILES | {name: b"x"})
    status, text = lock()
    assert status == 1 and "cannot be in a Bazel repository" in text and "--exclude=" in text
    assert lock("--exclude", name)[0] == 0


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"schema_version": 2, "models": {}}',
        '{"schema_version": 1, "models": {"m": {}}}',
    ],
)
def test_a_lock_file_that_is_none_is_left_alone(hub, lock, text):
    lock.path.write_text(text)
    status, printed = lock()
    assert status == 1 and "model.lock.json" in printed
    assert lock.path.read_text() == text
    assert not hub.log, "it is refused before the hub is asked"


def test_pattern_cases():
    """The cases that the Starlark implementation is tested with too."""
    source = Path(__file__).with_name("pattern_cases.bzl").read_text()
    cases = next(
        ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and node.targets[0].id == "PATTERN_CASES"
    )
    assert len(cases) > 20
    for pattern, path, expected in cases:
        assert patterns.matches(pattern, path) is expected, (pattern, path)
