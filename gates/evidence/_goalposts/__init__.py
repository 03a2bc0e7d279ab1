"""How the bar of today is compared with that of an earlier revision: one kind of goalpost in a file."""
