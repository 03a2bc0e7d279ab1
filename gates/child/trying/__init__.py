"""What tries faults in a copy of the project, by its interpreter: it stands alone, and needs nothing but pytest."""
