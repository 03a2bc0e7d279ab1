"""A corpus of ways in which a pytest run can end, each as a small real project, and what is right to say of it."""
