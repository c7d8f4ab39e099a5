"""What is LogMiner asked for, and which of the rows that it shows are taken, once each?"""
