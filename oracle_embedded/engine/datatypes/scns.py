"""Which numbers can be SCNs?"""

SCN_MAX = 1 << 62
"""Upper end of a range that is still open; also the base of the marks of open transactions."""
