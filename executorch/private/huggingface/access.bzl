"""The address of the hub, and the token for it.

Both come from the environment, a netrc file or Bazel's credential helper, and neither is part of a
result: contents are known by their digests, whoever served them. That is why the environment is
read without `getenv`, which would write the values, and so a token, into Bazel's record of the
repository.
"""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "read_netrc", "read_user_netrc")

visibility("private")

_DEFAULT_ENDPOINT = "https://huggingface.co"

# Characters that a URL's path has unescaped (RFC 3986, unreserved), and the rest of printable ASCII.
_UNRESERVED = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/"
_ASCII = " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"

def _refuse(what, instead):
    fail("\n\nERROR in the environment: {} {}\n".format(what, instead))

def hub_endpoint(rctx):
    """The base URL of the hub or of its mirror.

    Args:
        rctx: the repository context.

    Returns:
        A URL without a final slash.
    """
    endpoint = (rctx.os.environ.get("HF_ENDPOINT") or _DEFAULT_ENDPOINT).rstrip("/")
    scheme, _, rest = endpoint.partition("://")
    if scheme not in ["http", "https"] or not rest or "?" in rest or "#" in rest or " " in rest:
        _refuse("HF_ENDPOINT is not the base URL of a hub.", "Write it like {}.".format(_DEFAULT_ENDPOINT))
    if "@" in rest:
        _refuse(
            "HF_ENDPOINT has a user name or password in it, which would show in messages.",
            "Write the URL without them, and give the token in HF_TOKEN or in a netrc file.",
        )
    return endpoint

def _host(url):
    return url.partition("://")[2].partition("/")[0].partition(":")[0]

def hub_token(rctx, endpoint):
    """The token for the hub, if this machine has one.

    Args:
        rctx: the repository context.
        endpoint: the hub's base URL.

    Returns:
        A struct with `value` and `source`, the words for where it came from; None without a token,
        when Bazel may still get one from a credential helper.
    """
    value, source = (rctx.os.environ.get("HF_TOKEN") or "").strip(), "the variable HF_TOKEN"
    if not value:
        path = rctx.os.environ.get("NETRC")
        if path:
            machines = read_netrc(rctx, path) if rctx.path(path).exists else {}
        else:
            machines = read_user_netrc(rctx)
        value, source = machines.get(_host(endpoint), {}).get("password", ""), "the netrc file"
    if not value:
        return None
    if any([c in " \t\r\n\"\\'" for c in value.elems()]):
        _refuse("The token in {} has blanks or quotes in it, so it is not a token of a hub.".format(source), "Copy it again.")
    return struct(value = value, source = source)

def authorization(token, urls):
    """The argument `auth` of a download.

    Bazel looks it up by the exact URL of every request, so that a redirect to another place never
    carries the token. `headers` would go along with every redirect.

    Args:
        token: from `hub_token`.
        urls: the hub's URLs.

    Returns:
        A dict.
    """
    if not token:
        return {}
    return {
        url: {"type": "pattern", "pattern": "Bearer <password>", "password": token.value}
        for url in urls
    }

def percent_encoded(path):
    """A path as it is written in a URL.

    Args:
        path: printable ASCII.

    Returns:
        A string.
    """
    text = ""
    for character in path.elems():
        if character in _UNRESERVED:
            text += character
        else:
            text += "%%%X" % (_ASCII.index(character) + 32)
    return text
