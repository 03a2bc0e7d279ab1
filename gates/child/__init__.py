"""All that runs in the interpreter of the project: started, bounded in time, told over a channel, read back."""
