"""How do changes get into the mirrors? Windows are planned, captured, applied and replayed."""
