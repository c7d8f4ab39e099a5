"""How do statement trees become SQLite SQL?"""
