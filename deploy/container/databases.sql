-- PostgreSQL runs this once, on an empty volume. The metadata store has the database `redolake`, Dagster one of its own.
CREATE DATABASE dagster;
