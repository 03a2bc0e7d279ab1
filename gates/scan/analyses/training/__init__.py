"""What analyses ask of a training: its steps, what runs with each, forward passes, graphs, windows."""
