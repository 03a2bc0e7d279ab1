"""What runs in the copy, by the project's interpreter: it stands alone, and needs nothing but pytest."""
