"""Records from files of other systems, row by row, with a report of each."""
