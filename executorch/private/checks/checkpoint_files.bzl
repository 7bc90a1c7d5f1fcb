"""Which file of a checkpoint is what, by its name alone."""

load("//executorch/private/checks:messages.bzl", "display_label", "refuse")

visibility("//executorch/private/rules")

# What torch.save and its kin write. Loading one runs whatever program is inside.
_PICKLES = [".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth"]

# In the order of preference: the runner reads the first kind that is there.
_TOKENIZERS = ["tokenizer.json", "tekken.json", "tokenizer.model", "spiece.model"]

_TOKENIZER_PARTS = [
    "added_tokens.json",
    "merges.txt",
    "special_tokens_map.json",
    "vocab.json",
    "vocab.txt",
]

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
    for extension in _PICKLES:
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

def classify(ctx, files):
    """Sorts the files of a checkpoint, and refuses a set that is unsafe or incomplete.

    Args:
        ctx: the rule context, for messages.
        files: list of Files.

    Returns:
        A struct with `format` (`safetensors` or `gguf`), `weights` (list of Files), `config`,
        `generation_config`, `tokenizer`, `tokenizer_config`, `chat_template`, `readme`, `source`
        (File or None each), `licenses` (list of Files), and `relevant`, the list of all Files that
        say something about the model.
    """
    by_name = {}
    for file in files:
        name = file.basename
        if file.is_directory:
            refuse(
                ctx,
                "{} is a directory, and a checkpoint's files have to be known by name.".format(display_label(file.owner)),
                "List its files in srcs, for example with glob([\"folder/*\"]).",
            )
        if name in by_name and by_name[name] != file:
            refuse(
                ctx,
                "srcs has two files named {}: {} and {}.".format(name, by_name[name].short_path, file.short_path),
                "Leave one of them out; a checkpoint is one folder of the hub.",
            )
        by_name[name] = file

    pickles = sorted([name for name in by_name if _is_pickle(name)])
    safetensors = [by_name[name] for name in sorted(by_name) if name.endswith(".safetensors")]
    indexes = [by_name[name] for name in sorted(by_name) if name.endswith(".safetensors.index.json")]
    ggufs = [by_name[name] for name in sorted(by_name) if name.lower().endswith(".gguf")]

    if pickles:
        why = "{} {} pickled: loading such a file runs any code that is inside it, so it is refused.".format(
            ", ".join(pickles),
            "is" if len(pickles) == 1 else "are",
        )
        if safetensors or ggufs:
            refuse(ctx, why, "Leave it out of srcs; the weights are there in another format.")
        refuse(
            ctx,
            why,
            "Convert the checkpoint once, on a machine where that may happen, and use its " +
            "model.safetensors: {}".format(_CONVERT),
        )
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
    if len(indexes) > 1:
        refuse(
            ctx,
            "srcs has several safetensors indexes: {}.".format(", ".join([file.basename for file in indexes])),
            "Keep the one of the shards in srcs.",
        )
    if not safetensors and not ggufs:
        refuse(
            ctx,
            "srcs has no weights.",
            "Add the checkpoint's *.safetensors files (with their index, if they are sharded) or one *.gguf file.",
        )

    named = {
        key: ([by_name[name] for name in names if name in by_name] or [None])[0]
        for key, names in _NAMED.items()
    }
    if safetensors and not named["config"]:
        refuse(
            ctx,
            "srcs has no config.json, and without it safetensors are numbers without an architecture.",
            "Add the checkpoint's config.json.",
        )
    tokenizers = [by_name[name] for name in _TOKENIZERS if name in by_name]
    others = [
        by_name[name]
        for name in sorted(by_name)
        if name in _TOKENIZER_PARTS or _is_license(name) or _is_readme(name)
    ]
    readmes = [by_name[name] for name in sorted(by_name) if _is_readme(name)]
    weights = ggufs or safetensors + indexes
    return struct(
        format = "gguf" if ggufs else "safetensors",
        weights = weights,
        license_files = license_texts(files),
        readme = readmes[0] if readmes else None,
        source = by_name.get(_SOURCE),
        tokenizer = tokenizers[0] if tokenizers else None,
        relevant = weights + [file for file in named.values() if file] + tokenizers + others,
        **named
    )
