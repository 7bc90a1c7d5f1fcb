"""The module extension `huggingface`; users load it from //executorch:extensions.bzl."""

load(":content.bzl", "hub_content")
load(":hub.bzl", "hub_locations", "hub_model", "hub_refusal")
load(":lock.bzl", "is_hex", "lock_command", "locked_files")
load(":patterns.bzl", "pattern_error")

visibility("//executorch")

_LOCATIONS = "huggingface_locations"

_REPO_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

def _is_repo(text):
    owner, slash, name = text.partition("/")
    return bool(owner and slash and name) and all([c in _REPO_CHARACTERS for c in (owner + name).elems()])

def _mistake(tag):
    """What is wrong with a tag by itself: sentences, or None."""
    if not _is_repo(tag.repo):
        return ("repo = \"{}\" is not the name of a repository. ".format(tag.repo) +
                "Write repo = \"owner/name\", as in the address of the model's page.")
    if not is_hex(tag.revision, 40):
        return ("revision = \"{}\" is not a commit of 40 lower-case hexadecimal digits; a branch or a tag can move. ".format(tag.revision) +
                "The model's page has the commits under \"Files and versions\", \"History\"; or let the lock tool find the commit " +
                "and print the line to write:\n\n    {}\n".format(lock_command(tag)))
    for attribute in ["include", "exclude"]:
        wrong = pattern_error(getattr(tag, attribute))
        if wrong:
            return "{}: {} Write patterns such as \"*.json\" or \"onnx/\".".format(attribute, wrong)
    return None

def _model(module_ctx, module, tag):
    """A tag with its files, or with the refusal that a use of the model ends with."""
    mistake = _mistake(tag)
    locked = struct(files = {}, refusal = mistake) if mistake else locked_files(module_ctx, tag)
    where = "" if module.is_root else " of the module {}, in whose workspace this has to be mended".format(module.name)
    return struct(
        repo = tag.repo,
        revision = tag.revision,
        files = locked.files,
        refusal = "\n\nERROR in huggingface.model(name = \"{}\"){}: {}\n".format(
            tag.name,
            where,
            locked.refusal,
        ) if locked.refusal else None,
    )

def _huggingface_impl(module_ctx):
    models = {}
    contents = {}
    for module in module_ctx.modules:
        for tag in module.tags.model:
            model = _model(module_ctx, module, tag)
            if models.get(tag.name, model) != model:
                fail("\n\nERROR in huggingface.model(name = \"{}\") of the module {}: ".format(tag.name, module.name) +
                     "There is another model of this name, {} at {}. ".format(models[tag.name].repo, models[tag.name].revision) +
                     "Choose another name.\n")
            models[tag.name] = model
            for path, file in model.files.items():
                content = contents.setdefault(file["sha256"], struct(paths = {}, locations = []))
                content.paths[path] = True
                location = {"lfs": file["lfs"], "path": path, "repo": tag.repo, "revision": tag.revision}
                if location not in content.locations:
                    content.locations.append(location)

    hub_locations(
        name = _LOCATIONS,
        locations = json.encode_indent({digest: contents[digest].locations for digest in sorted(contents)}) + "\n",
    )
    for digest, content in contents.items():
        hub_content(
            name = "huggingface_" + digest,
            sha256 = digest,
            paths = sorted(content.paths),
            locations = "@{}//:BUILD.bazel".format(_LOCATIONS),
        )
    for name, model in models.items():
        if model.refusal:
            hub_refusal(name = name, message = model.refusal)
            continue
        hub_model(
            name = name,
            repo = model.repo,
            revision = model.revision,
            bytes = {path: str(file["size"]) for path, file in model.files.items()},
            files = {path: "@huggingface_{}//:{}".format(file["sha256"], path) for path, file in model.files.items()},
        )
    own = [tag for module in module_ctx.modules if module.is_root for tag in module.tags.model]
    return module_ctx.extension_metadata(
        reproducible = True,
        root_module_direct_deps = [tag.name for tag in own if not module_ctx.is_dev_dependency(tag)],
        root_module_direct_dev_deps = [tag.name for tag in own if module_ctx.is_dev_dependency(tag)],
    )

_model_tag = tag_class(
    attrs = {
        "exclude": attr.string_list(doc = "Patterns of files to leave out."),
        "include": attr.string_list(
            doc = "Patterns of files to take; all by default. `*` is any characters, also `/`, `?` is one, " +
                  "and a pattern that ends in `/` is everything below that folder.",
        ),
        "lock": attr.label(mandatory = True, doc = "The JSON lock file. Several models may share one."),
        "name": attr.string(mandatory = True, doc = "Name of the repository: `@name//:files`."),
        "repo": attr.string(mandatory = True, doc = "The model's repository on the hub, `owner/name`."),
        "revision": attr.string(mandatory = True, doc = "A commit: 40 hexadecimal digits."),
    },
    doc = "A model of the hub, at one revision.",
)

huggingface = module_extension(
    implementation = _huggingface_impl,
    tag_classes = {"model": _model_tag},
    doc = """Fetches models from the Hugging Face Hub or a mirror of it.

```starlark
huggingface = use_extension("@rules_executorch//executorch:extensions.bzl", "huggingface")
huggingface.model(
    name = "smollm2",
    repo = "HuggingFaceTB/SmolLM2-135M-Instruct",
    revision = "<40 hexadecimal digits>",
    include = ["*.json", "*.safetensors"],
    lock = "//models:huggingface.lock.json",
)
use_repo(huggingface, "smollm2")
```

`@smollm2//:files` has the files, and each one is a target of its own name, for example
`@smollm2//:config.json`. A file is fetched when a target uses it, is checked against the sha256 of
the lock file, and is kept by its digest: a new revision fetches what changed, and two models that
share a file fetch it once. `bazel run @rules_executorch//tools:lock` writes the lock file.

Environment: `HF_ENDPOINT` is the base URL of a mirror; `HF_TOKEN`, else the netrc file's password
for the endpoint's host, else a credential helper opens gated and private models. None of them is
part of a result, and a token goes to the endpoint only, never along with a redirect. Where Bazel
runs with `--experimental_strict_repo_env`, hand the variables over with `--repo_env=HF_TOKEN`.
""",
)
