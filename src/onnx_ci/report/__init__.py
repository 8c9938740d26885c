"""Merges results into markdown, JUnit, annotations, a page and the pull request comment."""
