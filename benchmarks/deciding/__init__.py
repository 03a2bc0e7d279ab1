"""Are the verdicts on timed arms right, and how dear are they? Replayed from recorded traces, and live."""
