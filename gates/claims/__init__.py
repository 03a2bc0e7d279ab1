"""Claims that somebody made about a change: read from files and reports, looked up, and checked one by one."""
