"""What the tests run: all public code, and the code of their own criterion?"""
