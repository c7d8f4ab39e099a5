"""How do the Delta tables of a captured table follow its definition: columns, defaults,
wider types?"""
