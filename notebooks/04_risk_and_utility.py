# Databricks notebook source
# MAGIC %md
# MAGIC # Risk against utility
# MAGIC
# MAGIC Which mechanism, and which epsilon? A sweep makes a release for each, measures what it is still good for and attacks it
# MAGIC in several ways, and draws the map with its Pareto front. Everything is computed from the original without noise, so
# MAGIC this is for data that are public or simulated. Everything here is simulated.

# COMMAND ----------

# MAGIC %md
# MAGIC ## People, and others like them
# MAGIC The holdout are people who were in no release: what an attacker learns about them does not come from their records. On
# MAGIC Databricks set `folder` to a folder of a volume and `store` to a schema (`schema:catalog.schema`).

# COMMAND ----------

import tempfile

import pandas as pd

from rapid_spark import load
from rapid_spark.simulate import registry
from rapid_spark.sweep.picture import draw
from rapid_spark.sweep.work import sweep

folder = tempfile.mkdtemp()
for name, seed in (("people", 1), ("others", 2)):
    registry(1_000, kappa=5, seed=seed).round({"age": -1, "income": -4}).to_csv(f"{folder}/{name}.csv", index=False)

config = load(
    None,
    {
        "registry": "simulated",
        "original": f"{folder}/people.csv",
        "holdout": f"{folder}/others.csv",
        "quasi_identifiers": ["age", "gender", "education"],
        "sensitive_attributes": ["disease_status"],
        "attackers": ["cart"],
        "intervals.permutations": 0,
        "disclosure.max_records": 500,
        "store.location": f"{folder}/store",
        "tracking.enabled": False,
    },
)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The sweep
# MAGIC The same run id goes on where a sweep was stopped.

# COMMAND ----------

found = sweep([config], names=("independent", "naive_bayes"), budgets=(0.1, 8.0), run_id="map")
columns = ["mechanism", "epsilon", "utility", "rapid", "rapid_excess", "membership_auc", "linkage", "pareto"]
pd.DataFrame(found["results"])[columns]

# COMMAND ----------

# MAGIC %md
# MAGIC ## The map
# MAGIC Down and to the right is better: useful, and no more predictable than by chance. A release on the front is beaten by
# MAGIC no other in both.

# COMMAND ----------

draw(found["results"], "simulated")
