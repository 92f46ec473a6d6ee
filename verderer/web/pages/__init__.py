"""One module for one page or a few that belong together: a function, a context, a template."""
