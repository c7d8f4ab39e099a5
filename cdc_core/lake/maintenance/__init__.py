"""How do Delta tables stay quick, and how do values leave them for good?"""
