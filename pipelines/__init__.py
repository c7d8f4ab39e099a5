"""Definitions, schedules, sensors, command line and demo: everything above the assets."""
