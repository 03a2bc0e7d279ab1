"""What the settings of a program are where nobody changes them, and what its objects are made with."""
