"""Asking the hub: which files a revision has, and what their digests are.

`huggingface_hub` does the requests; this module adds three rules. A token is sent only to the
origin of the endpoint, whatever a redirect or a `Link` header says. Rate limits are waited for,
within bounds. Every failure becomes a `UserError` that never shows a token.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import netrc
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlsplit

import httpx2
import huggingface_hub
from huggingface_hub import constants, errors
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import (
    build_hf_headers,
    hf_raise_for_status,
    http_stream_backoff,
    parse_ratelimit_headers,
)
from huggingface_hub.utils._http import default_client_factory

from rules_executorch.common.errors import UserError
from rules_executorch.hub import patterns
from rules_executorch.hub.lockfile import LockedFile, LockedModel, check_path

# Seconds that one run waits for rate limits in total.
PATIENCE = 300

# Attempts when a body ends early or a connection breaks.
_ATTEMPTS = 4


class RateLimitedError(Exception):
    """The hub asks for a pause of `seconds`, longer than `PATIENCE` allows."""

    def __init__(self, status: int, seconds: int) -> None:
        super().__init__(status, seconds)
        self.status = status
        self.seconds = seconds


def endpoint_from_environment() -> str:
    """The hub's base URL: `HF_ENDPOINT`, else the public hub.

    Raises:
        UserError: it is not a base URL, or contains credentials.
    """
    endpoint = (os.environ.get("HF_ENDPOINT") or constants._HF_DEFAULT_ENDPOINT).rstrip("/")
    url = urlsplit(endpoint)
    if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment:
        raise UserError(
            "HF_ENDPOINT is not the base URL of a hub.",
            instead=f"Write it like {constants._HF_DEFAULT_ENDPOINT}.",
        )
    if "@" in url.netloc:
        raise UserError(
            "HF_ENDPOINT has a user name or password in it, which would show in messages.",
            instead="Write the URL without them, and give the token in HF_TOKEN or a netrc file.",
        )
    return endpoint


def token_for(endpoint: str) -> str | None:
    """The token of this machine for an endpoint.

    `HF_TOKEN`, else the password of the netrc file's entry for the host, else, for the public hub,
    what `hf auth login` stored.

    Raises:
        UserError: the netrc file cannot be read, or the token is malformed.
    """
    token = os.environ.get("HF_TOKEN", "").strip()
    if not token:
        with contextlib.suppress(FileNotFoundError):
            try:
                hosts = netrc.netrc(os.environ.get("NETRC")).hosts
            except netrc.NetrcParseError as error:
                raise UserError(
                    f"The netrc file cannot be read: {error.msg} in line {error.lineno}.",
                    instead="Mend it, or give the token in HF_TOKEN.",
                ) from None
            # Not `authenticators`, which falls back to the password of the default entry.
            token = hosts.get(urlsplit(endpoint).hostname or "", ("", "", ""))[2] or ""
    if not token and endpoint == constants._HF_DEFAULT_ENDPOINT:
        token = huggingface_hub.get_token() or ""
    if re.search(r"[\s\"'\\]", token):
        raise UserError(
            "The token has blanks or quotes in it, so it is not a token of a hub.",
            instead="Copy it again.",
        )
    return token or None


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return (url.scheme, url.host, url.port)


class Hub:
    """A hub, for the time of a `with` block.

    Args:
        endpoint: the base URL.
        token: a token, or None.
        say: prints one line for the person at the keyboard.
    """

    def __init__(
        self,
        endpoint: str,
        token: str | None,
        say: Callable[[str], None],
    ) -> None:
        self.endpoint = endpoint
        self._token = token
        self._say = say
        self._patience = PATIENCE
        # False, not None: with None the library looks for a token itself.
        self._api = huggingface_hub.HfApi(endpoint=endpoint, token=token or False)

    def __enter__(self) -> Hub:
        huggingface_hub.set_client_factory(self._client)
        # Errors are reported below, without text from the server.
        logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)
        return self

    def __exit__(self, *exception: object) -> None:
        huggingface_hub.set_client_factory(default_client_factory)

    def _client(self) -> httpx2.Client:
        client = default_client_factory()
        client.timeout = httpx2.Timeout(60)
        hooks = client.event_hooks
        hooks["request"] = [*hooks["request"], self._guard_token]
        hooks["response"] = [*hooks["response"], self._bound_waiting]
        client.event_hooks = hooks
        return client

    def _guard_token(self, request: httpx2.Request) -> None:
        if _origin(request.url) != _origin(httpx2.URL(self.endpoint)):
            request.headers.pop("Authorization", None)

    def _bound_waiting(self, response: httpx2.Response) -> None:
        """Lets the library wait for what the hub asks, up to `PATIENCE`."""
        if response.status_code not in (429, 503):
            return
        limit = parse_ratelimit_headers(response.headers)
        asked = response.headers.get("Retry-After", "")
        if response.status_code == 429 and limit is not None and limit.remaining == 0:
            seconds = limit.reset_in_seconds
        else:
            seconds = int(asked) if asked.isdigit() else 0
        if seconds > self._patience:
            raise RateLimitedError(response.status_code, seconds)
        self._patience -= seconds
        pause = f"waiting {seconds} s as it asks" if seconds else "trying again"
        self._say(f"The hub limits the rate of requests ({response.status_code}); {pause}.")

    def _redacted(self, text: str) -> str:
        return text.replace(self._token, "<token>") if self._token else text

    @contextlib.contextmanager
    def _in_words(self, repo: str, revision: str, path: str | None = None) -> Iterator[None]:
        """Turns the failures of a block into sentences."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            what, instead = self._words(error, repo, revision, path)
            raise UserError(self._redacted(what), instead=self._redacted(instead)) from None

    def _words(
        self, error: Exception, repo: str, revision: str, path: str | None
    ) -> tuple[str, str]:
        page = f"{self.endpoint}/{repo}"
        tokens = f"{self.endpoint}/settings/tokens"
        ways = "Set HF_TOKEN, or add the hub's host to the netrc file with the token as password."
        response = getattr(error, "response", None)
        status = response.status_code if response is not None else 0
        match error:
            case RateLimitedError():
                return (
                    f"The hub limits the request rate ({error.status}): wait {error.seconds} s.",
                    f"Run this again then. With a token the limit is higher: {ways}",
                )
            case errors.OfflineModeIsEnabled():
                return (
                    "HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set, and locking needs the hub.",
                    "Unset it for this command.",
                )
            case errors.GatedRepoError() if not self._token:
                return (
                    f"{repo} is gated, and there is no token ({status}).",
                    f"Accept its conditions at {page}, make a token with read access at {tokens}."
                    f" {ways}",
                )
            case errors.GatedRepoError():
                return (
                    f"{repo} is gated, and the token's account has no access to it ({status}).",
                    f"Accept the conditions at {page} with that account, and wait for the access.",
                )
            case errors.RevisionNotFoundError():
                return (
                    f"{repo} has no revision {revision} (404).",
                    f"Choose a branch, tag or commit at {page}/commits/main.",
                )
            case errors.RemoteEntryNotFoundError():
                return (
                    f"{path or 'The listing'} of {repo} is not at revision {revision} (404).",
                    f"Check {page}/tree/{revision}.",
                )
            case errors.DisabledRepoError():
                return f"The hub has disabled access to {repo} (403).", f"Read {page} for why."
            case errors.RepositoryNotFoundError() if self._token:
                return (
                    f"The hub has no repository {repo}, or hides it from this token ({status}).",
                    f"Check {page}.",
                )
            case errors.RepositoryNotFoundError():
                return (
                    f"The hub has no public repository {repo} ({status}): it is private, or its"
                    " name is wrong.",
                    f"Check {page}. {ways}",
                )
            case errors.HFValidationError():
                return f"--repo {repo} is not the name of a repository.", "Write owner/name."
            case httpx2.TimeoutException():
                return f"{self.endpoint} does not answer in time.", "Run this again later."
            case httpx2.ProtocolError() | httpx2.ReadError():
                return (
                    f"The transfer of {path or 'the listing'} broke off every time: {error}.",
                    "Run this again when the connection is better.",
                )
            case httpx2.TransportError():
                return (
                    f"There is no connection to {self.endpoint}: {error}.",
                    "Check the network, the proxy variables and HF_ENDPOINT.",
                )
        return self._words_of_status(error, status, tokens, ways)

    def _words_of_status(
        self, error: Exception, status: int, tokens: str, ways: str
    ) -> tuple[str, str]:
        if status == 401 and self._token:
            return (
                "The hub refuses the token (401): it expired, was revoked, or is mistyped.",
                f"Make a new one at {tokens}.",
            )
        if status == 401:
            return "The hub wants a token (401).", ways
        if status == 403:
            return (
                f"The hub forbids this (403){' for the given token' if self._token else ''}.",
                f"A fine-grained token must name the repository with read permission: {tokens}."
                if self._token
                else ways,
            )
        if status == 429:
            return "The hub limits the rate of requests (429).", f"Run this again later. {ways}"
        if status >= 500:
            return f"The hub has a fault ({status}).", "Run this again later, or use a mirror."
        return (
            f"{self.endpoint} does not answer as a hub does ({status or type(error).__name__}).",
            "Check HF_ENDPOINT.",
        )

    def resolve(self, repo: str, revision: str) -> str:
        """The commit that a branch, a tag or a short commit means.

        Returns:
            40 hexadecimal digits.

        Raises:
            UserError: there is no such revision, or the repository was renamed.
        """
        with self._in_words(repo, revision):
            info = self._api.model_info(repo, revision=revision)
            commit, name = str(info.sha), info.id
        if name != repo:
            raise UserError(f"{repo} is called {name} now.", instead=f"Write --repo {name}.")
        if not re.fullmatch("[0-9a-f]{40}", commit):
            raise UserError(
                f"{self.endpoint} does not answer as a hub does: a commit is {commit!r}.",
                instead="Check HF_ENDPOINT.",
            )
        return commit

    def lock(
        self, repo: str, revision: str, include: Sequence[str], exclude: Sequence[str]
    ) -> LockedModel:
        """Lists a revision and gives every wanted file its digest.

        The listing gives the sha256 of files in large-file storage. All others are small: they are
        downloaded and compared with the git object id in the listing.

        Args:
            repo: `owner/name`.
            revision: a commit.
            include: patterns of files to take; all if empty.
            exclude: patterns of files to leave out.

        Raises:
            UserError: the hub fails, no file matches, or a name is not valid in Bazel.
        """
        with self._in_words(repo, revision):
            tree = self._api.list_repo_tree(repo, revision=revision, recursive=True)
            listed = {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}
        wanted = patterns.selected(sorted(listed), include, exclude)
        if not wanted:
            raise UserError(
                f"None of the {len(listed)} files of {repo} is left by the patterns.",
                instead=f"The files are: {', '.join(sorted(listed)[:20])}.",
            )
        for pattern in include:
            if not patterns.selected(wanted, [pattern], []):
                self._say(f"No file matches --include {pattern}.")
        locked = {}
        for path in wanted:
            check_path(path)
            entry = listed[path]
            if entry.lfs:
                digest, size = entry.lfs.sha256, entry.lfs.size
            else:
                self._say(f"Hashing {path} ({entry.size} bytes).")
                digest, size = self._hash(repo, revision, entry), entry.size
            locked[path] = LockedFile(size=size, sha256=digest, lfs=bool(entry.lfs))
        return LockedModel(
            repo, revision, tuple(sorted(set(include))), tuple(sorted(set(exclude))), locked
        )

    def _hash(self, repo: str, revision: str, entry: RepoFile) -> str:
        url = huggingface_hub.hf_hub_url(
            repo, entry.path, revision=revision, endpoint=self.endpoint
        )
        headers = build_hf_headers(token=self._token or False)
        headers["Accept-Encoding"] = "identity"
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(attempt)
            sha256 = hashlib.sha256()
            git = hashlib.sha1(b"blob %d\0" % entry.size, usedforsecurity=False)
            size = 0
            with self._in_words(repo, revision, entry.path):
                try:
                    with http_stream_backoff(
                        "GET", url, headers=headers, retry_on_exceptions=()
                    ) as response:
                        hf_raise_for_status(response)
                        for chunk in response.iter_bytes():
                            size += len(chunk)
                            sha256.update(chunk)
                            git.update(chunk)
                except httpx2.TransportError as error:
                    if attempt + 1 == _ATTEMPTS:
                        raise
                    self._say(f"The transfer of {entry.path} broke off ({error}); once more.")
                    continue
            if size != entry.size:
                continue
            if git.hexdigest() != entry.blob_id:
                raise UserError(
                    f"What {self.endpoint} serves as {entry.path} is not what its listing names"
                    f" (git object {entry.blob_id}).",
                    instead="A proxy or a mirror altered it: lock from the hub itself.",
                )
            return sha256.hexdigest()
        raise UserError(
            f"{self.endpoint} serves {entry.path} with another size than the {entry.size} bytes of"
            f" its listing, {_ATTEMPTS} times.",
            instead="Run this again later, or use another mirror.",
        )
