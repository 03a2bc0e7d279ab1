"""What analyses ask of a benchmark: its arms, clocks, verdicts, and which way what it measures is better."""
