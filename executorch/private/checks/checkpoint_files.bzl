"""Which file of a checkpoint is what, by its name alone."""

load("//executorch/private/checks:messages.bzl", "display_label", "refuse")
load("//executorch/private/tables:options.bzl", "COMPANIONS", "PICKLES", "TOKENIZERS")

visibility("//executorch/private/rules")

# What says something about the model beside the files with a role of their own.
_COMPANIONS = COMPANIONS + ["modules.json"]

_NAMED = {
    "chat_template": ["chat_template.jinja"],
    "config": ["config.json"],
    "generation_config": ["generation_config.json"],
    "tokenizer_config": ["tokenizer_config.json"],
}

_CONVERT = "python -c \"from transformers import AutoModelForCausalLM as M; " + \
           "M.from_pretrained('DIR').save_pretrained('DIR.safetensors')\""

def _is_pickle(name):
    lower = name.lower()
    for extension in PICKLES:
        if lower.endswith(extension):
            return True
    return False

# Where a checkpoint of the module extension `huggingface` comes from.
_SOURCE = "huggingface.json"

def _is_license(name):
    upper = name.upper()
    return upper.startswith("LICENSE") or upper.startswith("NOTICE")

def _is_readme(name):
    return name.upper() == "README.MD"

def license_texts(files):
    """Texts of licences and notices among the files of a checkpoint.

    Args:
        files: list of Files.

    Returns:
        List of Files, sorted by name: LICENSE before NOTICE.
    """
    by_name = {file.basename: file for file in files if _is_license(file.basename)}
    return [by_name[name] for name in sorted(by_name)]

def _folder(path):
    return path.rpartition("/")[0]

def _is_first_module(folder):
    return folder.rpartition("/")[2].startswith("0_")

def _is_module(name):
    """Whether a file is in a folder of a model of sentence-transformers, such as `1_Pooling/`."""
    number, underscore, _ = name.partition("/")[0].partition("_")
    return underscore == "_" and number.isdigit() and not _is_pickle(name)

def _nearest(files):
    """Those of some files that have the fewest folders above them."""
    if not files:
        return []
    depth = min([file.short_path.count("/") for file in files])
    return [file for file in files if file.short_path.count("/") == depth]

def _refuse_same_name(ctx, name, one, other):
    refuse(
        ctx,
        "srcs has two files named {}: {} and {}.".format(name, one.short_path, other.short_path),
        "Leave one of them out; a checkpoint is one folder of the hub.",
    )

def names_below_root(ctx, files):
    """Where each file lies in its checkpoint.

    The root is the folder of the config.json that is nearest to the top, without one that of the
    weights. If it is the first folder of a model of sentence-transformers, `0_Transformer`, the
    folder above it is, and what is in it counts as if it were beside it. A file that lies elsewhere
    counts as if it lay in the root. `names_below_root` of checkpoint/sources.py does the same.

    Args:
        ctx: the rule context, for messages.
        files: list of Files.

    Returns:
        A dict of Files by their name below the root: `config.json`, `1_Pooling/config.json`.
    """
    configs = _nearest([file for file in files if file.basename == "config.json"])
    if len(configs) > 1:
        first = [file for file in configs if _is_first_module(_folder(file.short_path))]
        configs = first or configs
    if len(configs) > 1 and configs[0] != configs[1]:
        _refuse_same_name(ctx, "config.json", configs[0], configs[1])
    anchors = configs or _nearest([
        file
        for file in files
        if file.basename.endswith(".safetensors") or file.basename.lower().endswith(".gguf")
    ])
    folder = _folder(anchors[0].short_path) if anchors else ""
    root = _folder(folder) if _is_first_module(folder) else folder
    prefix = root + "/" if root else ""
    by_name = {}
    for file in files:
        name = file.basename
        if _folder(file.short_path) != folder and file.short_path.startswith(prefix):
            name = file.short_path[len(prefix):]
        if by_name.setdefault(name, file) != file:
            _refuse_same_name(ctx, name, by_name[name], file)
    return by_name

def _safetensors(ctx, top):
    """The weights that transformers would take, and their index if they are sharded."""
    files = [
        top[name]
        for name in sorted(top)
        if name.endswith(".safetensors") and not name.startswith("adapter_")
    ]
    indexes = [top[name] for name in sorted(top) if name.endswith(".safetensors.index.json")]
    if "model.safetensors.index.json" in top:
        return files + [top["model.safetensors.index.json"]]
    if "model.safetensors" in top:
        return [top["model.safetensors"]]
    if len(indexes) > 1:
        refuse(
            ctx,
            "srcs has several safetensors indexes: {}.".format(", ".join([file.basename for file in indexes])),
            "Keep the one of the shards in srcs.",
        )
    return files + indexes

def _refuse_no_weights(ctx, by_name):
    for name in by_name:
        if name.rpartition("/")[2].startswith("adapter_"):
            refuse(
                ctx,
                "srcs has the files of an adapter (LoRA) and no whole model: an adapter changes the weights of another checkpoint.",
                "Merge it into its base model once (merge_and_unload of the peft package, then save_pretrained) and use those files.",
            )
    pickles = sorted([name for name in by_name if _is_pickle(name)])
    if pickles:
        refuse(
            ctx,
            "{} {} pickled: loading such a file runs any code that is inside it, so it is refused.".format(
                ", ".join(pickles),
                "is" if len(pickles) == 1 else "are",
            ),
            "Convert the checkpoint once, on a machine where that may happen, and use its " +
            "model.safetensors: {}".format(_CONVERT),
        )
    below = [name for name in sorted(by_name) if name.endswith(".safetensors") or name.lower().endswith(".gguf")]
    if below:
        refuse(
            ctx,
            "srcs has weights only in folders below the one of config.json, which are passed over: {}.".format(
                ", ".join([by_name[name].short_path for name in below]),
            ),
            "List the files of one folder of the hub, or weights that lie beside config.json.",
        )
    refuse(
        ctx,
        "srcs has no weights.",
        "Add the checkpoint's *.safetensors files (with their index, if they are sharded) or one *.gguf file.",
    )

def classify(ctx, files):
    """Sorts the files of a checkpoint, and refuses a set that is unsafe or incomplete.

    Args:
        ctx: the rule context, for messages.
        files: list of Files.

    Returns:
        A struct with `format` (`safetensors` or `gguf`), `weights` (list of Files), `config`,
        `generation_config`, `tokenizer`, `tokenizer_config`, `chat_template`, `readme`, `source`
        (File or None each), `licenses` (list of Files), `relevant`, a dict of all Files that say
        something about the model by their name below its root, `modules`, those of them in the
        folders of a model of sentence-transformers, and `passed_over`, the names of the others.
    """
    for file in files:
        if file.is_directory:
            refuse(
                ctx,
                "{} is a directory, and a checkpoint's files have to be known by name.".format(display_label(file.owner)),
                "List its files in srcs, for example with glob([\"folder/*\"]).",
            )
    by_name = names_below_root(ctx, files)
    top = {name: file for name, file in by_name.items() if "/" not in name}
    safetensors = _safetensors(ctx, top)
    ggufs = [top[name] for name in sorted(top) if name.lower().endswith(".gguf")]
    if safetensors and ggufs:
        refuse(
            ctx,
            "srcs has the weights twice, as {} and as {}.".format(safetensors[0].basename, ggufs[0].basename),
            "Leave one format out.",
        )
    if len(ggufs) > 1:
        refuse(
            ctx,
            "srcs has several GGUF files: {}.".format(", ".join([file.basename for file in ggufs])),
            "Keep the one to use; each of them is a whole model.",
        )
    if not safetensors and not ggufs:
        _refuse_no_weights(ctx, by_name)

    named = {
        key: ([top[name] for name in names if name in top] or [None])[0]
        for key, names in _NAMED.items()
    }
    if safetensors and not named["config"]:
        refuse(
            ctx,
            "srcs has no config.json, and without it safetensors are numbers without an architecture.",
            "Add the checkpoint's config.json.",
        )
    tokenizers = [top[name] for name in TOKENIZERS if name in top]
    readmes = [top[name] for name in sorted(top) if _is_readme(name)]
    weights = ggufs or safetensors
    kept = weights + tokenizers + [file for file in named.values() if file]
    modules = {
        name: by_name[name]
        for name in sorted(by_name)
        if "/" in name and "modules.json" in top and _is_module(name)
    }
    relevant = {
        name: by_name[name]
        for name in sorted(by_name)
        if by_name[name] in kept or name in modules or name in _COMPANIONS or
           ("/" not in name and (_is_license(name) or _is_readme(name)))
    }
    return struct(
        format = "gguf" if ggufs else "safetensors",
        weights = weights,
        license_files = license_texts(top.values()),
        readme = readmes[0] if readmes else None,
        source = top.get(_SOURCE),
        tokenizer = tokenizers[0] if tokenizers else None,
        relevant = relevant,
        modules = modules,
        passed_over = [name for name in sorted(by_name) if name not in relevant and name != _SOURCE],
        **named
    )
