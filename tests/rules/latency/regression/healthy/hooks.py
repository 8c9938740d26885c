"""Its time is compared with that of what was there before."""

COMPARED_WITH_BEFORE = True
