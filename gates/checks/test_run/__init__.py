"""The test run: can it be believed, what failed, what was left out?"""
