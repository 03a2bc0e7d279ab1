"""Commands that stand for a criterion: do they call its code, and heed its errors?"""
