"""What several checks say findings with: aspects, what stands for a criterion, sizes, rows of bars."""
