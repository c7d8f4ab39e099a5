"""How do rows, their versions, transactions and definitions live in SQLite?"""
