"""The provider of `lowerings`."""

visibility("//executorch/private/rules")

DOC = """The lowerings of one model for several devices, shared by devices that agree."""

FIELDS = {
    "devices": "dict from the label of a device, as a string, to a struct with `device` " +
               "(`ExecutorchDeviceInfo`), `exported` (`ExportedProgramInfo`) and `files` (the " +
               "struct of `lower_for_device`).",
    "distinct": "list of such structs, one for each lowering, the first device of it.",
}

LoweringsInfo = provider(doc = DOC, fields = FIELDS)
