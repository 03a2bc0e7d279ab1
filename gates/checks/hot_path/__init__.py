"""What a step of training waits for, and where its time goes."""
