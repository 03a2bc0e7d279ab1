"""The plugin that notes executed lines; copied to where the project's interpreter finds it."""
