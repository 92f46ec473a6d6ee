"""Pages over HTTP, with rows put straight into the database."""
