"""Reading what came in: weights, config, tokenizer, licence, tasks, all as hostile input.

Nothing here runs code from a checkpoint or allocates by a number that a file claims before that
number has been checked against the file's size.
"""
