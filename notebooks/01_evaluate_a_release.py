# Databricks notebook source
# MAGIC %md
# MAGIC # How much does a release give away?
# MAGIC
# MAGIC You hold an *original* table of people and a *release* of it. This notebook measures RAPID: the share of people about
# MAGIC whom an attacker, who knows a few facts and trains a model on the release, predicts a sensitive attribute confidently
# MAGIC and rightly. Everything here is simulated; put your own tables in place of `people` and `published`.

# COMMAND ----------

# MAGIC %md
# MAGIC ## Two tables
# MAGIC pandas frames, Spark frames (`spark.table("catalog.schema.people")`) or paths: all three work.

# COMMAND ----------

from rapid_spark import assess
from rapid_spark.plots import plot_attackers, plot_curve, plot_subgroups
from rapid_spark.simulate import registry
from rapid_spark.synthesizers import CartSynthesizer

people = registry(2_000, kappa=5, seed=1, key=True)
published = CartSynthesizer(seed=2).fit(people.drop(columns="record_id")).sample(len(people), seed=3)
published.head()

# COMMAND ----------

# MAGIC %md
# MAGIC ## The question
# MAGIC What an attacker is assumed to know, what they would like to know, and how they go about it. The second attacker matters:
# MAGIC one weak attacker does not show that a release is safe.

# COMMAND ----------

assessment = assess(
    people,
    published,
    {
        "columns": {"key": "record_id"},
        "quasi_identifiers": ["age", "gender", "education"],
        "sensitive_attributes": ["disease_status"],
        "attackers": [{"name": "rf", "parameters": {"n_estimators": 100}}, "logit"],
        "intervals": {"bootstrap": 200},
    },
)
assessment.summary[["attacker", "n", "n_at_risk", "rapid", "ci_low", "ci_high", "baseline_rate", "excess", "accuracy"]]

# COMMAND ----------

# MAGIC %md
# MAGIC `rapid` is the share of people at risk, `baseline_rate` what chance gives, `excess` what the release adds to it. The
# MAGIC interval holds release and attacker fixed: it says how the rate would vary if the people were a sample of more people.

# COMMAND ----------

plot_attackers(assessment)

# COMMAND ----------

# MAGIC %md
# MAGIC ## How far does it depend on the threshold?

# COMMAND ----------

plot_curve(assessment)

# COMMAND ----------

# MAGIC %md
# MAGIC ## Who is at risk?
# MAGIC Groups that are small, or in which nearly all are at risk, are withheld.

# COMMAND ----------

plot_subgroups(assessment, "education")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Person by person
# MAGIC A Spark frame, one row per person and attacker. It is as sensitive as the attribute itself: keep it where the original is.

# COMMAND ----------

assessment.records.groupBy("attacker", "at_risk").count().orderBy("attacker", "at_risk").show()

# COMMAND ----------

assessment.close()
