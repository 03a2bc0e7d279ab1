"""Code rules, one in a file: what a tree of Python source must or must not do."""
