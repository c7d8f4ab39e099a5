"""How do PL/SQL blocks run?"""
