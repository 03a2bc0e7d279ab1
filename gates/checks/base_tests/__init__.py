"""The base's tests judge the change: what they noticed before, they notice still."""
