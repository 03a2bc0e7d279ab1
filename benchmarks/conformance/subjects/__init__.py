"""One file a library, each used as its documentation says. Each has `SUBJECT`."""
