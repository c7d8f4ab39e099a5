"""One module per question; each measures ours, a peer or ceiling, and whether the result was right,
in one run."""
