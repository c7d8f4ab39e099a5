"""How do sessions run statements?"""
