"""What a criterion measures: targets, the base as an arm, evidence from elsewhere, and how it was taken."""
