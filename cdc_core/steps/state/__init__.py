"""What does landing keep for a metadata store that gets lost, how is it noticed that the store is
older than landing, and how is a store made anew?"""
