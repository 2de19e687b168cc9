"""The paper's simulation studies, and cross-validation of synthesizers, with their tasks spread over Spark."""
