"""Which transactions are open, and how does each end?"""
