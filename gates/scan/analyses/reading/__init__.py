"""What analyses ask of any code: what is called, where values come from, what runs what."""
