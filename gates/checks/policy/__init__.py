"""What the change made lower of what it is judged by: task file, settings, tests, rules, templates."""
