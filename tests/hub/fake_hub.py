"""A model hub on the loopback interface, with the faults of a real one.

It speaks the part of the public hub's HTTP interface that downloads use: model information at
`/api/models/REPO/revision/REV`, the paged listing at `/api/models/REPO/tree/REV`, and contents at
`/REPO/resolve/REV/PATH`. As on the real hub, a file in large-file storage is served by another host
("the CDN", a second server here) behind a redirect, and a small file by the hub itself behind a
redirect to a path of the same host, or at `/REPO/raw/REV/PATH` without one. Errors carry the
`X-Error-Code` headers that clients rely on.

The same is served below `/mirror`, as by a mirror that is not at the root of its host.

Every request is logged with its Authorization header, so that a test can say what was fetched, how
often, and who saw a token.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit


@dataclass(frozen=True)
class Request:
    """One request as a server saw it."""

    server: str
    method: str
    path: str
    authorization: str | None


@dataclass
class Fault:
    """What goes wrong with the next requests for a path.

    Attributes:
        kind: `status` answers with `status`; `truncate` sends half of the body and hangs up;
            `corrupt` sends other bytes of the same length; `redirect` points at `location`.
        times: how many requests it spoils; each takes one.
        status: the HTTP status of kind `status`.
        headers: headers of that answer.
        location: the target of kind `redirect`.
    """

    kind: str
    times: int = 1_000_000
    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    location: str = ""


@dataclass
class Repo:
    """A model repository: branches, and the files of each revision."""

    revisions: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    gated: bool = False
    private: bool = False

    def commit(self, files: dict[str, bytes], branch: str = "main") -> str:
        """Adds a revision whose tree is `files` and points `branch` at it.

        Returns:
            The revision: 40 hexadecimal digits.
        """
        tree = "".join(f"{path}\0{_git_oid(data)}\0" for path, data in sorted(files.items()))
        revision = hashlib.sha1(f"{self.branches.get(branch)}\0{tree}".encode()).hexdigest()
        self.revisions[revision] = dict(files)
        self.branches[branch] = revision
        return revision


def _git_oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _is_lfs(path: str) -> bool:
    return path.endswith((".safetensors", ".gguf", ".bin"))


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: FakeHub, name: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub = hub
        self.name = name

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients hang up when they have seen enough; that is no fault of the server."""


class FakeHub:
    """The hub and its CDN; a context manager that serves until its end.

    Attributes:
        repos: repositories by `owner/name`.
        tokens: tokens that exist, with the gated or private repositories each may read.
        faults: by a part of the path; the first that matches a request's path applies.
        log: every request, in order.
        page_size: entries of one page of a listing.
    """

    def __init__(self, page_size: int = 2) -> None:
        self.repos: dict[str, Repo] = {}
        self.tokens: dict[str, set[str]] = {}
        self.faults: dict[str, Fault] = {}
        self.log: list[Request] = []
        self.page_size = page_size
        self.lock = threading.Lock()
        self._servers = {name: _Server(self, name) for name in ("hub", "cdn")}

    def __enter__(self) -> FakeHub:
        for server in self._servers.values():
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        for server in self._servers.values():
            server.shutdown()
            server.server_close()

    @property
    def endpoint(self) -> str:
        """The hub's base URL."""
        return f"http://127.0.0.1:{self._servers['hub'].server_port}"

    @property
    def cdn(self) -> str:
        """The base URL of the other host."""
        return f"http://localhost:{self._servers['cdn'].server_port}"

    def fetched(self) -> list[str]:
        """Paths of the files whose contents were asked for since the log was cleared, sorted."""
        return sorted(
            {
                unquote("/".join(parts[5:]))
                for r in self.log
                if r.server == "hub" and r.method == "GET"
                for parts in [urlsplit(r.path).path.removeprefix("/mirror").split("/")]
                if parts[3:4] in (["resolve"], ["raw"])
            }
        )

    def seen_by(self, server: str) -> Iterable[str]:
        """Authorization headers that a server received."""
        return [r.authorization for r in self.log if r.server == server and r.authorization]

    def take_fault(self, path: str) -> Fault | None:
        """The fault that applies to a request, if any; uses up one of its times."""
        with self.lock:
            for part, fault in self.faults.items():
                if part in path and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """The requests are in `FakeHub.log`."""

    def do_HEAD(self) -> None:  # noqa: N802
        self._serve()

    def do_GET(self) -> None:  # noqa: N802
        self._serve()

    def _serve(self) -> None:
        hub = self.server.hub
        token = self.headers.get("Authorization")
        with hub.lock:
            hub.log.append(Request(self.server.name, self.command, self.path, token))
        path = unquote(urlsplit(self.path).path).removeprefix("/mirror")
        fault = hub.take_fault(path)
        if fault and fault.kind == "status":
            self._answer(fault.status, b'{"error": "made to fail"}', fault.headers)
        elif fault and fault.kind == "redirect":
            self._answer(302, b"", {"Location": fault.location})
        elif self.server.name == "cdn":
            self._cdn(path, fault)
        else:
            self._hub(path, fault)

    def _answer(
        self,
        status: int,
        body: bytes,
        headers: dict[str, str] | None = None,
        sent: int | None = None,
    ) -> None:
        """Answers; `sent` below the body's length hangs up after that many bytes."""
        first = 0
        requested = self.headers.get("Range", "")
        if status == 200 and requested.startswith("bytes="):
            first = int(requested[6:].split("-")[0] or 0)
            status, whole, body = 206, len(body), body[first:]
            headers = dict(headers or {})
            headers["Content-Range"] = f"bytes {first}-{whole - 1}/{whole}"
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body if sent is None else body[:sent])
        if sent is not None:
            self.wfile.flush()
            self.close_connection = True

    def _error(self, status: int, code: str, message: str) -> None:
        body = json.dumps({"error": message}).encode()
        self._answer(status, body, {"X-Error-Code": code, "X-Error-Message": message})

    def _json(self, value: Any, headers: dict[str, str] | None = None) -> None:
        self._answer(
            200, json.dumps(value).encode(), {"Content-Type": "application/json"} | (headers or {})
        )

    def _content(self, data: bytes, fault: Fault | None, headers: dict[str, str]) -> None:
        if fault and fault.kind == "corrupt":
            data = bytes(byte ^ 1 for byte in data)
        sent = len(data) // 2 if fault and fault.kind == "truncate" else None
        self._answer(200, data, headers, sent)

    def _cdn(self, path: str, fault: Fault | None) -> None:
        digest = path.rsplit("/", 1)[-1]
        for repo in self.server.hub.repos.values():
            for files in repo.revisions.values():
                for data in files.values():
                    if hashlib.sha256(data).hexdigest() == digest:
                        self._content(data, fault, {"ETag": f'"{digest}"'})
                        return
        # What a host that wants a token answers: clients must not hand over one for another host.
        self._answer(401, b"", {"WWW-Authenticate": 'Bearer realm="hub"'})

    def _may_read(self, repo_id: str, repo: Repo, contents: bool) -> bool:
        """Whether the request's token opens the repository; answers with the refusal if not."""
        hub = self.server.hub
        header = self.headers.get("Authorization")
        token = header.removeprefix("Bearer ") if header else None
        if token is not None and token not in hub.tokens:
            self._error(401, "", f"Invalid credentials in Authorization header: {token}")
        elif repo.private and repo_id not in hub.tokens.get(token or "", ()):
            self._missing_repo()
        elif repo.gated and contents and repo_id not in hub.tokens.get(token or "", ()):
            self._error(403 if token else 401, "GatedRepo", "Access to this model is restricted.")
        else:
            return True
        return False

    def _missing_repo(self) -> None:
        """As the real hub does: a missing repository looks like a private one without a token."""
        if self.headers.get("Authorization"):
            self._error(404, "RepoNotFound", "Repository not found")
        else:
            self._error(401, "RepoNotFound", "Invalid username or password.")

    def _hub(self, path: str, fault: Fault | None) -> None:
        parts = path.strip("/").split("/")
        api = parts[:2] == ["api", "models"]
        cached = parts[:3] == ["api", "resolve-cache", "models"]
        parts = parts[3:] if cached else parts[2:] if api else parts
        repo_id = "/".join(parts[:2])
        repo = self.server.hub.repos.get(repo_id)
        if repo is None:
            self._missing_repo()
            return
        if not self._may_read(repo_id, repo, contents=not api):
            return
        verb, rest = ("cached", parts[2:]) if cached else ((parts + ["", ""])[2], parts[3:])
        wanted = rest[0] if rest else "main"
        revision = repo.branches.get(wanted, wanted)
        files = repo.revisions.get(revision)
        if files is None:
            self._error(404, "RevisionNotFound", f"Invalid rev id: {wanted}")
        elif api and verb in ("", "revision"):
            self._json(
                {
                    "id": repo_id,
                    "modelId": repo_id,
                    "sha": revision,
                    "gated": repo.gated,
                    "private": repo.private,
                    "tags": [],
                    "siblings": [{"rfilename": name} for name in sorted(files)],
                }
            )
        elif api and verb == "tree":
            self._tree(repo_id, wanted, files)
        elif verb in ("resolve", "raw", "cached"):
            self._file(repo_id, revision, verb, "/".join(rest[1:]), files, fault)
        else:
            self._error(404, "", "Not here")

    def _tree(self, repo_id: str, revision: str, files: dict[str, bytes]) -> None:
        folders = {p.rsplit("/", 1)[0] for p in files if "/" in p}
        entries: list[dict[str, Any]] = [
            {"type": "directory", "oid": "0" * 40, "size": 0, "path": f} for f in sorted(folders)
        ]
        for name, data in sorted(files.items()):
            entry: dict[str, Any] = {"type": "file", "path": name, "size": len(data)}
            entry["oid"] = _git_oid(data)
            if _is_lfs(name):
                entry["oid"] = _git_oid(b"pointer")
                entry["lfs"] = {
                    "oid": hashlib.sha256(data).hexdigest(),
                    "size": len(data),
                    "pointerSize": 130,
                }
            entries.append(entry)
        start = int(parse_qs(urlsplit(self.path).query).get("cursor", ["0"])[0])
        end = start + self.server.hub.page_size
        headers = {}
        if end < len(entries):
            base = f"{self.server.hub.endpoint}/api/models/{repo_id}/tree/{revision}"
            headers["Link"] = f'<{base}?recursive=True&cursor={end}>; rel="next"'
        self._json(entries[start:end], headers)

    def _file(
        self,
        repo_id: str,
        revision: str,
        verb: str,
        name: str,
        files: dict[str, bytes],
        fault: Fault | None,
    ) -> None:
        data = files.get(name)
        if data is None:
            self._error(404, "EntryNotFound", "Entry not found")
            return
        headers = {"X-Repo-Commit": revision, "ETag": f'"{_git_oid(data)}"'}
        if verb == "raw" and _is_lfs(name):
            self._content(b"version https://git-lfs.example/spec/v1\n", fault, headers)
        elif verb in ("raw", "cached"):
            self._content(data, fault, headers)
        elif _is_lfs(name):
            digest = hashlib.sha256(data).hexdigest()
            headers |= {
                "X-Linked-Etag": f'"{digest}"',
                "X-Linked-Size": str(len(data)),
                "Location": f"{self.server.hub.cdn}/blobs/{digest}",
            }
            self._answer(302, b"", headers)
        else:
            headers["Location"] = f"/api/resolve-cache/models/{repo_id}/{revision}/{quote(name)}"
            self._answer(307, b"", headers)
