"""Reading programs that were written: contents, data files, operators, differences."""
