"""Reading a checkpoint: weights, config and tokenizer, with every input treated as hostile.

Nothing here runs code from a checkpoint or allocates by a number that a file claims before that
number has been checked against the file's size.
"""
