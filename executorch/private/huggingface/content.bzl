"""The repository of one file content."""

load(":access.bzl", "authorization", "hub_endpoint", "hub_token", "percent_encoded")
load(":diagnosis.bzl", "diagnose")

visibility("private")

# Bazel retries when it gets no answer, a 5xx or a 429, but not when a body ends early.
_ATTEMPTS = 3

def _locations(rctx):
    """Where the content is, as dicts; read without being watched.

    A new revision of a model moves all of its files, and those that did not change are the same
    content: they must not be fetched again because there is a new place to fetch them from. A
    label is watched whenever it becomes a path, hence the detour by a file that never changes.
    """
    path = rctx.path(rctx.attr.locations).dirname.get_child("locations.json")
    return json.decode(rctx.read(path, watch = "no"))[rctx.attr.sha256]

def _urls(location, endpoint, token):
    """The hub's URLs of a content, the preferred one first."""
    place = "{}/{{}}/{}/{}".format(location["repo"], location["revision"], percent_encoded(location["path"]))
    urls = ["{}/{}".format(endpoint, place.format("resolve"))]
    if token and not location["lfs"]:
        # The hub answers for a small file with a redirect to another path of its own, where
        # Bazel sends no token. `raw` serves small files in place.
        urls.insert(0, "{}/{}".format(endpoint, place.format("raw")))
    return urls

def _download(rctx, output, urls, token):
    """Fetches the content; leaves nothing when that fails.

    Returns:
        A struct with `success`, and `broke_off`: whether the last body ended early.
    """
    for attempt in range(_ATTEMPTS):
        result = rctx.download(
            url = urls,
            output = output,
            sha256 = rctx.attr.sha256,
            auth = authorization(token, urls),
            allow_fail = True,
        )
        if result.success:
            return struct(success = True, broke_off = False)

        # Bazel leaves part of a file, or none if the status or the digest was wrong.
        broke_off = rctx.delete(output)
        if not broke_off or attempt + 1 == _ATTEMPTS:
            return struct(success = False, broke_off = broke_off)
    return None

def _hub_content_impl(rctx):
    endpoint = hub_endpoint(rctx)
    token = hub_token(rctx, endpoint)
    first = rctx.attr.paths[0]
    locations = _locations(rctx)
    urls = [url for location in locations for url in _urls(location, endpoint, token)]
    result = _download(rctx, first, urls, token)
    if not result.success:
        location = locations[0]
        what, instead = diagnose(
            rctx,
            endpoint = endpoint,
            token = token,
            url = _urls(location, endpoint, None)[0],
            location = location,
            sha256 = rctx.attr.sha256,
            broke_off = result.broke_off,
        )
        fail("\n\nERROR in {}@{}: {} {}\n".format(location["repo"], location["revision"], what, instead))

    for path in rctx.attr.paths[1:]:
        rctx.symlink(first, path)
    rctx.file("BUILD.bazel", "exports_files({}, visibility = [\"//visibility:public\"])\n".format(repr(rctx.attr.paths)))
    return rctx.repo_metadata(reproducible = True) if hasattr(rctx, "repo_metadata") else None

hub_content = repository_rule(
    implementation = _hub_content_impl,
    attrs = {
        "locations": attr.label(
            mandatory = True,
            doc = "A file that never changes, beside locations.json, which has for every digest where the content is.",
        ),
        "paths": attr.string_list(mandatory = True, doc = "Names of the file, sorted; the others are links to the first."),
        "sha256": attr.string(mandatory = True),
    },
    doc = "A file, fetched by its digest; the repository cache is asked first.",
)
