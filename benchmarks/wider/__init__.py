"""What is measured beside the benchmark: inference, other shapes, and the figures of both."""
