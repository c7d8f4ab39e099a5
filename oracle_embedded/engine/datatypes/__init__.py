"""Which datatypes are there, and how are their values computed with?"""
