"""What do the dictionary views show?"""
