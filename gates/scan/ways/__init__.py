"""Which code leads to which: who mentions, keeps and calls the functions that have to do with events."""
