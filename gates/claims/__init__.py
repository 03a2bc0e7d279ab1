"""Claims of a report: counts, sums, quotients, percentages and quoted lines, each done again or looked up."""
