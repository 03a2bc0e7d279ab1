"""Times a step of the tested project at several sizes; copied to where the project's interpreter finds it."""
