"""How do DDL statements run?"""
