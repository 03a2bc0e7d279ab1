"""Claims of a report: counts, sums, shares and quoted lines, each done again or looked up."""
