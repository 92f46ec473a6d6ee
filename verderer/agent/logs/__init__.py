"""What attempts print, from the driver into chunks in the object store."""
