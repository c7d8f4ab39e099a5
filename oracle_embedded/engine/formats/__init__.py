"""How do dates and numbers become text, and texts dates and numbers?"""
