"""The provider of `executorch_toolchain`."""

visibility("//executorch/...")

DOC = """The Python of the actions, with torch, transformers and executorch.

The same fields are on the toolchain itself: `ctx.toolchains["@rules_executorch//executorch:toolchain_type"].launcher`.
An action is `LAUNCHER main.py ...`, with `files` among its inputs."""

FIELDS = {
    "launcher": "File: runs the Python. No absolute path is in it, so that it is the same on every machine; it finds " +
                "its packages from its own location.",
    "marker": "File: JSON with the Python, the system and every wheel that is really installed. It stands for the " +
              "packages in the keys of actions.",
    "files": "depset of Files that an action needs: launcher and marker, and, in declared mode, the interpreter and " +
             "every file of every package.",
    "versions": "dict of strings: versions of the packages that a rule or a manifest may ask for, such as " +
                "{\"executorch\": \"1.5.1\", \"torch\": \"2.13.0+cpu\"}.",
    "execution_requirements": "dict: execution requirements of an action. With packages that are not inputs, an " +
                              "action cannot run on another machine: {\"no-remote-exec\": \"1\"}.",
}

ExecutorchToolchainInfo = provider(doc = DOC, fields = FIELDS)
