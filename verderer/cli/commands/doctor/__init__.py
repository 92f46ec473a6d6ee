"""`doctor`: looks at everything that has to be right, says what is not, and what to do about it."""
