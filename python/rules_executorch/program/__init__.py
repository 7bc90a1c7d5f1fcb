"""Reading what was written: contents of `.pte` and `.ptd`, operators, differences, embedding."""
