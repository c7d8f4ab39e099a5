"""Which SQL functions are there?"""
