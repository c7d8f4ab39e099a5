"""Benchmarks that the runner's tests run."""
