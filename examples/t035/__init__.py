"""The subject of task T035: a small GPT trained in mixed precision from the command line."""
