"""Does the package come to life by itself: does it build, does each module import?"""
