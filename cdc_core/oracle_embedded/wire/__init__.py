"""How does the embedded Oracle speak TNS and TTC with the unmodified python-oracledb thin driver?"""
