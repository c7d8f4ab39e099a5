"""How is Oracle's SQL and PL/SQL text read into trees?"""
