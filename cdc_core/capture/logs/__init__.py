"""Which redo logs hold a range of SCNs, how is that proved, and where does LogMiner read them?"""
