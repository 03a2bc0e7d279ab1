"""One file a case, named by its hazard; the folder is the registry. Each has `CASE = Case(...)`."""
