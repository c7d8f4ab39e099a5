"""What became of the tables in a window: which definitions change, and which streams end?"""
