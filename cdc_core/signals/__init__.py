"""What may be asked from outside, through which channels, and where notifications of it go.

Nothing here acts: :mod:`cdc_core.steps.signals` does, exactly once.
"""
