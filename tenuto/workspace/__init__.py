"""One opened repository: the journal, the files that show it, and turns at changing both."""
