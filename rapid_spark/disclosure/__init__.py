"""Classical disclosure measures beside RAPID, each one group-by or join on Spark."""
