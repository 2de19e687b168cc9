# Databricks notebook source
# MAGIC %md
# MAGIC # A release with a formal guarantee
# MAGIC
# MAGIC Noise is added to counts over declared bins, so that what is published hardly depends on any one person: differential
# MAGIC privacy with a stated epsilon. What was spent on a population stands in a ledger. Everything here is simulated.

# COMMAND ----------

# MAGIC %md
# MAGIC ## The people, and what is declared about them
# MAGIC Bins and the number of people are constants that anybody could write down: nothing is read off the data. On Databricks
# MAGIC set `folder` to a folder of a volume and `store` to a schema (`schema:catalog.schema`).

# COMMAND ----------

import tempfile

import matplotlib.pyplot as plt
import pandas as pd

from rapid_spark import Store, assess
from rapid_spark.reaedp.filter import Budget
from rapid_spark.reaedp.ledger import set_budget, show
from rapid_spark.releases.desk import release
from rapid_spark.releases.histogram import HistogramRelease
from rapid_spark.releases.settings import ReleaseConfig
from rapid_spark.releases.storage import DeltaLedger
from rapid_spark.simulate import registry

folder = tempfile.mkdtemp()
store = f"{folder}/store"
people = registry(2_000, kappa=5, seed=1)
people.to_csv(f"{folder}/people.csv", index=False)

config = ReleaseConfig.model_validate(
    {
        "dataset": "registry", "original": f"{folder}/people.csv", "n_declared": 2_000, "public": True,
        "adjacency": "add_remove", "epsilon": 1.0,
        "domains": {
            "education": {"levels": sorted(people["education"].unique())},
            "gender": {"levels": sorted(people["gender"].unique())},
            "disease_status": {"levels": sorted(people["disease_status"].unique())},
        },
        "histogram": {"tables": [["education", "disease_status"], ["gender", "disease_status"]], "records": 2_000},
        "store": {"location": store},
    }
)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The plan
# MAGIC How epsilon is split, and how large the noise will be, is known before anything is drawn.

# COMMAND ----------

planned = HistogramRelease.of(config)
pd.DataFrame(planned.plan())

# COMMAND ----------

# MAGIC %md
# MAGIC ## The budget, then the draw
# MAGIC The limit of the population is fixed once. A draw is entered before its noise exists; what would go over the limit is
# MAGIC refused, and the same run id returns what was drawn instead of drawing anew.

# COMMAND ----------

entries = DeltaLedger(Store.open(spark, store))  # noqa: F821  (the notebook's session)
set_budget(
    entries, Budget(dataset="registry", epsilon=2.0, delta=0.0, adjacency="add_remove", n_declared=2_000)
)
drawn = release(planned, config, "first")
again = release(planned, config, "first")
(drawn.guarantee.as_dict(), again.drawn_before)

# COMMAND ----------

pd.DataFrame(show(entries.read(), "registry")["entries"])[["release_id", "mechanism", "epsilon", "delta", "state"]]

# COMMAND ----------

# MAGIC %md
# MAGIC ## What the noise did
# MAGIC The data are simulated, so the true counts may stand beside the released ones; of real people they must not.

# COMMAND ----------

noisy = drawn.frames["tables"].query("table == 'education*disease_status'").sort_values("cell")["count"].to_numpy()
true = people.groupby(["education", "disease_status"]).size().unstack(fill_value=0).to_numpy().ravel()
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.bar(range(len(true)), true, color="lightgrey", label="true")
axes.plot(range(len(noisy)), noisy, "o", color="tab:blue", label="released")
axes.set(xlabel="cell (education and disease status)", ylabel="people", title="Counts at epsilon 1")
axes.legend(frameon=False)
figure

# COMMAND ----------

# MAGIC %md
# MAGIC ## What an attacker learns from it all the same
# MAGIC The guarantee bounds what one person's record adds. What holds in the population can still be predicted: RAPID says
# MAGIC how well.

# COMMAND ----------

assessment = assess(
    people,
    drawn.frames["records"],
    {"quasi_identifiers": ["education", "gender"], "sensitive_attributes": ["disease_status"], "attackers": ["cart"],
     "intervals": {"bootstrap": 100, "permutations": 0}},
)
found = assessment.summary[["attacker", "rapid", "ci_low", "ci_high", "baseline_rate", "excess"]]
assessment.close()
found
