"""What analyses ask of an evaluation: its forward passes, the mode of its model, the data that it goes over."""
