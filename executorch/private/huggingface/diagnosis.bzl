"""Why a download failed, in words.

Bazel's downloader tells a repository rule that it failed and not how, so the hub is asked once more
with curl, which every supported system has, for the status alone. The error codes are those that
the hub sends in `X-Error-Code` for its own client.
"""

visibility("private")

# The token reaches curl through its standard input: arguments can be read by every user.
_ASK = """\
if [ -n "$HF_TOKEN" ]; then
  printf 'header = "Authorization: Bearer %s"\\n' "$HF_TOKEN"
fi | "$1" -q -K - -sS -o /dev/null -D - -r 0-0 --suppress-connect-headers --proto =http,https --max-time 30 \\
  -w 'x-status: %{http_code}\\n' -- "$2"
"""

_WAYS_IN = ("Give Bazel a token with read access: the variable HF_TOKEN, a netrc entry for the hub's " +
            "host with the token as password, or a credential helper (--credential_helper).")

def _ask(rctx, url, token):
    """Status, headers and curl's own complaint for a URL; None where there is no curl."""
    curl, shell = rctx.which("curl"), rctx.which("sh")
    if not curl or not shell:
        return None
    result = rctx.execute(
        [shell, "-c", _ASK, "sh", curl, url],
        environment = {"HF_TOKEN": token.value if token else ""},
        quiet = True,
    )
    headers = {}
    for line in result.stdout.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    complaint = result.stderr.strip()
    if token:
        complaint = complaint.replace(token.value, "<token>")
    status = headers.get("x-status", "0")
    return struct(status = int(status) if status.isdigit() else 0, headers = headers, complaint = complaint)

def _refused(what, endpoint, repo, token, code, status):
    """The hub's 401 and 403."""
    page = "{}/{}".format(endpoint, repo)
    if code == "GatedRepo" and not token:
        return (
            "{} is gated, and the request came without a token (401).".format(repo),
            "Accept its conditions at {}. {}".format(page, _WAYS_IN),
        )
    if code == "GatedRepo":
        return (
            "{} is gated, and the account of the token in {} has no access to it ({}).".format(repo, token.source, status),
            "Accept the conditions at {} with that account, and wait until access is granted.".format(page),
        )
    if status == 403:
        return (
            "The hub forbids reading {}{} (403).".format(what, " with the token in {}".format(token.source) if token else ""),
            "A fine-grained token must name this repository or its owner with read permission. Make one at {}/settings/tokens.".format(endpoint),
        )
    if token:
        return (
            "The hub refuses the token in {} (401): it expired, was revoked, or is mistyped.".format(token.source),
            "Make a new one at {}/settings/tokens.".format(endpoint),
        )
    return (
        "The hub has no public repository {} (401): it is private, or its name is wrong.".format(repo),
        "Check {}. {}".format(page, _WAYS_IN),
    )

def _missing(what, repo, revision, endpoint, code):
    """The hub's 404."""
    if code == "RepoNotFound":
        return (
            "The hub has no repository {}, or hides it from this token (404).".format(repo),
            "Check {}/{}.".format(endpoint, repo),
        )
    if code == "RevisionNotFound":
        return (
            "{} has no revision {} any more (404); its history may have been rewritten.".format(repo, revision),
            "Choose a revision at {}/{}/commits/main and lock it.".format(endpoint, repo),
        )
    return (
        "{} is not on the hub (404).".format(what),
        "Check {}/{}/tree/{}, and HF_ENDPOINT if it is set; then lock the model again.".format(endpoint, repo, revision),
    )

def diagnose(rctx, *, endpoint, token, url, location, sha256, broke_off):
    """Says why the last download of a file failed.

    Args:
        rctx: the repository context.
        endpoint: the hub's base URL.
        token: from `hub_token`.
        url: the URL on the hub.
        location: dict with `repo`, `revision` and `path`.
        sha256: the locked digest.
        broke_off: whether the body ended early.

    Returns:
        Two strings: what is wrong, and what to do.
    """
    repo, revision = location["repo"], location["revision"]
    what = "{} of {}".format(location["path"], repo)
    if broke_off:
        return (
            "The transfer of {} broke off every time it was tried.".format(what),
            "Build again when the connection is better; other files that arrived are kept.",
        )
    answer = _ask(rctx, url, token)
    if not answer:
        return (
            "{} could not be fetched from {}.".format(what, endpoint),
            "Bazel's warning above has the status: 401 and 403 want a token or more rights, 404 " +
            "means that the file is gone, 429 that the hub limits the rate. " + _WAYS_IN,
        )
    status, code = answer.status, answer.headers.get("x-error-code", "")
    if status in [401, 403]:
        return _refused(what, endpoint, repo, token, code, status)
    if status in [404, 410]:
        return _missing(what, repo, revision, endpoint, code)
    if status == 429:
        wait = answer.headers.get("retry-after", "")
        if not wait:
            # The hub's own header, for example `"api";r=0;t=55`.
            wait = answer.headers.get("ratelimit", "").partition(";t=")[2].partition(";")[0]
        return (
            "The hub limits the rate of requests (429).",
            "Build again {}. Requests with a token have a higher limit: {}".format(
                "in {} seconds".format(wait) if wait.isdigit() else "in some minutes",
                _WAYS_IN,
            ),
        )
    if status >= 500:
        return (
            "The hub has a fault ({}) and did not recover while Bazel tried again.".format(status),
            "Build again later, or set HF_ENDPOINT to a mirror.",
        )
    if status == 0:
        return (
            "There is no connection to {}: {}.".format(endpoint, answer.complaint or "no answer"),
            "Check the network, the proxy variables and HF_ENDPOINT. What the repository cache has is built without a network.",
        )
    if status >= 400:
        return ("The hub answers {} to the request for {}.".format(status, what), "Check HF_ENDPOINT.")
    return (
        "The hub serves {}, and what arrives is not the locked file (sha256 {}).".format(what, sha256),
        "Bazel's warning above has the digest or the status of the host that the hub points to. The same " +
        "revision never changes, so a proxy or a mirror altered the file: do not update the lock to match it.",
    )
