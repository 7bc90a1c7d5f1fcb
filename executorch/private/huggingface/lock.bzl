"""The lock file of models: path, size and sha256 of every file.

`bazel run @rules_executorch//tools:lock` writes it; `rules_executorch schema huggingface-lock`
prints its schema. Nothing in it is trusted to be a path or a digest before it was looked at: a lock
file comes in pull requests too.
"""

load(":patterns.bzl", "selected")

visibility("private")

SCHEMA_VERSION = 1

_HEX = "0123456789abcdef"

# Bazel's target names, without what would have to be escaped on some file system or in a label.
_PATH_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 !%-@^_#$&'()*+,;=?[]{}~/."

# In these, Bazel would see a package or a repository boundary rather than a file of the model.
_BOUNDARIES = ["BUILD", "BUILD.bazel", "MODULE.bazel", "REPO.bazel", "WORKSPACE", "WORKSPACE.bazel"]

def is_hex(text, digits):
    """Whether a value is a string of lower-case hexadecimal digits.

    Args:
        text: any value.
        digits: how many digits there must be.

    Returns:
        A boolean.
    """
    return type(text) == "string" and len(text) == digits and all([c in _HEX for c in text.elems()])

def _quoted(argument):
    safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@+="
    if argument and all([c in safe for c in argument.elems()]):
        return argument
    return "'" + argument.replace("'", "'\\''") + "'"

def lock_command(tag):
    """The command that locks a model.

    Args:
        tag: the tag `huggingface.model`.

    Returns:
        A line for a shell.
    """
    words = ["--name", tag.name, "--repo", tag.repo, "--revision", tag.revision]
    for option, patterns in [("--include", tag.include), ("--exclude", tag.exclude)]:
        for pattern in patterns:
            words.append("{}={}".format(option, pattern))
    words += ["--lock", "//{}:{}".format(tag.lock.package, tag.lock.name)]
    return "bazel run @rules_executorch//tools:lock -- " + " ".join([_quoted(w) for w in words])

def path_error(path):
    """Why a path of a model repository cannot be a file of a Bazel repository.

    Args:
        path: the path.

    Returns:
        The rest of a sentence that begins with the path, or None.
    """
    segments = path.split("/")
    if "" in segments or "." in segments or ".." in segments:
        return "is not a plain relative path"
    if any([c not in _PATH_CHARACTERS for c in path.elems()]):
        return "has characters that a Bazel label cannot have"
    for segment in segments:
        if segment in _BOUNDARIES:
            return "would be a package boundary to Bazel"
    return None

def _entry_error(entry):
    """What is wrong with the shape of an entry; None if it is sound."""
    if type(entry) != "dict":
        return "is not an object"
    if type(entry.get("repo")) != "string" or type(entry.get("revision")) != "string":
        return "has no repo or no revision"
    for key in ["include", "exclude"]:
        if type(entry.get(key)) != "list" or any([type(p) != "string" for p in entry[key]]):
            return "has no list of strings \"{}\"".format(key)
    if type(entry.get("files")) != "dict" or not entry["files"]:
        return "has no files"
    for path, file in entry["files"].items():
        wrong = path_error(path)
        if wrong:
            return "lists \"{}\", which {}".format(path, wrong)
        if type(file) != "dict" or type(file.get("size")) != "int" or type(file.get("lfs")) != "bool":
            return "gives \"{}\" no size or no lfs".format(path)
        if not is_hex(file.get("sha256"), 64):
            return "gives \"{}\" no sha256 of 64 lower-case hexadecimal digits".format(path)
    return None

def _staleness(entry, tag):
    """Why an entry is not that of a tag; None if it is."""
    for key, value in [("repo", tag.repo), ("revision", tag.revision)]:
        if entry[key] != value:
            return "locks {} {}, and MODULE.bazel wants {}".format(key, entry[key], value)

    # An entry without patterns locks the whole revision, whatever is wanted of it.
    if entry["include"] or entry["exclude"]:
        for key, value in [("include", tag.include), ("exclude", tag.exclude)]:
            if sorted(entry[key]) != sorted(value):
                return "was written for {} = {}, and MODULE.bazel wants {}".format(key, entry[key], value)
    return None

def locked_files(module_ctx, tag):
    """The files that a model takes from its lock file.

    Args:
        module_ctx: the extension's context.
        tag: the tag `huggingface.model`.

    Returns:
        A struct with `files`, a dict from paths to dicts with `sha256`, `size` (bytes) and `lfs`,
        sorted by path; and `refusal`, None or sentences that say why there are none.
    """
    label = "//{}:{}".format(tag.lock.package, tag.lock.name)
    files = {}
    path = module_ctx.path(tag.lock)
    lock = json.decode(module_ctx.read(path), default = None) if path.exists else None
    if not path.exists:
        wrong = "The lock file {} does not exist.".format(label)
    elif type(lock) != "dict" or type(lock.get("models")) != "dict":
        wrong = "The lock file {} is not readable; restore or delete it.".format(label)
    elif lock.get("schema_version") != SCHEMA_VERSION:
        wrong = "The lock file {} has schema_version {}, and this ruleset reads {}; use the ruleset that wrote it, or delete it.".format(
            label,
            lock.get("schema_version"),
            SCHEMA_VERSION,
        )
    elif tag.name not in lock["models"]:
        wrong = "The lock file {} has no entry for this model.".format(label)
    else:
        entry = lock["models"][tag.name]
        wrong = _entry_error(entry) or _staleness(entry, tag)
        if wrong:
            wrong = "The entry in the lock file {} {}.".format(label, wrong)
        else:
            files = {p: entry["files"][p] for p in selected(sorted(entry["files"]), tag.include, tag.exclude)}
            if not files:
                wrong = "include and exclude leave none of the model's {} files.".format(len(entry["files"]))
    refusal = "{} To write it, run\n\n    {}\n".format(wrong, lock_command(tag)) if wrong else None
    return struct(files = files, refusal = refusal)
