# Databricks notebook source
# MAGIC %md
# MAGIC # Which of these releases may be published?
# MAGIC
# MAGIC An audit evaluates the releases of many registries with the same attackers, judges each by one policy, and sets the
# MAGIC registries side by side. Everything here is simulated; `conf/audit.yml` shows the same as a file, and
# MAGIC `rapid-spark audit --config conf/audit.yml` runs it from a scheduler.

# COMMAND ----------

# MAGIC %md
# MAGIC ## Two registries, one of them careless
# MAGIC On Databricks set `folder` to a folder of a volume (`/Volumes/catalog/schema/volume/audit`) and `store` to a schema
# MAGIC (`schema:catalog.schema`).

# COMMAND ----------

import tempfile

import matplotlib.pyplot as plt

from rapid_spark import Store
from rapid_spark.audit import AuditConfig, audit
from rapid_spark.simulate import registry
from rapid_spark.synthesizers import CartSynthesizer

folder = tempfile.mkdtemp()
store = f"{folder}/store"

north, south = registry(1_000, kappa=5, seed=1), registry(1_500, kappa=5, seed=2)
north.to_csv(f"{folder}/north.csv", index=False)
south.to_csv(f"{folder}/south.csv", index=False)
CartSynthesizer(min_leaf=100, seed=3).fit(north).sample(len(north), seed=4).to_csv(f"{folder}/north_2026.csv", index=False)
south.to_csv(f"{folder}/south_2026.csv", index=False)  # a copy of the original, published as it is

# COMMAND ----------

# MAGIC %md
# MAGIC ## The policy
# MAGIC A limit that is exceeded fails; a rule that cannot be judged never counts as passed.

# COMMAND ----------

config = AuditConfig.model_validate(
    {
        "defaults": {
            "quasi_identifiers": ["age", "gender", "education"],
            "sensitive_attributes": [{"name": "disease_status"}],
            "attackers": [{"name": "cart"}],
            "intervals": {"bootstrap": 100, "permutations": 0},
            "publish": {"rounding": 5},
        },
        "registries": [
            {"name": "north", "original": f"{folder}/north.csv", "releases": f"{folder}/north_*.csv"},
            {"name": "south", "original": f"{folder}/south.csv", "releases": f"{folder}/south_*.csv"},
        ],
        "policy": {"context": {"audience": "public"}, "limits": {"excess": 0.35, "min_n": 500}},
        "compare": {"by": ["education", "gender"]},
        "store": {"location": store},
        "tracking": {"enabled": False},
    }
)
outcome = audit(config)
outcome.verdicts[["registry", "release_id", "rule", "limit", "figure", "verdict"]]

# COMMAND ----------

# MAGIC %md
# MAGIC ## The same, from the store
# MAGIC Views answer what people ask; a dashboard reads the ones whose names start with `published_`.

# COMMAND ----------

results = Store.open(spark, store, create=False)  # noqa: F821  (the notebook's session)
results.query("SELECT registry, release_id, verdict, not_passed FROM release_verdicts ORDER BY registry").show()

# COMMAND ----------

shown = results.query("SELECT * FROM registry_comparison ORDER BY registry").toPandas()
figure, axes = plt.subplots(figsize=(7, 2.5), layout="constrained")
axes.barh(shown["registry"], shown["rapid_decisive"], color="tab:blue", label="people at risk")
axes.barh(shown["registry"], shown["baseline_rate"], color="lightgrey", label="of them by chance")
axes.set(xlim=(0, 1), xlabel="share of the people of the registry", title="People at risk in the last release")
axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
figure

# COMMAND ----------

# MAGIC %md
# MAGIC Registries differ in who is in them. The standardised rates are what each would have with the same mix of people.

# COMMAND ----------

outcome.comparison[["registry", "n", "rapid", "standardised", "coverage", "note"]]

# COMMAND ----------

# MAGIC %md
# MAGIC ## For readers outside
# MAGIC Counts are rounded to multiples of 5, small ones withheld, rates are those of the rounded counts.

# COMMAND ----------

results.query("SELECT registry, release_id, n, n_at_risk, rapid, withheld FROM published_risk ORDER BY registry").show()
