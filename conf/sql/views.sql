-- Views of a store. Each reads only runs whose latest attempt is finished, and speaks of original records.
-- In an order in which each finds what it reads.

CREATE OR REPLACE VIEW finished_runs
COMMENT 'Runs whose latest attempt is finished, one row each'
AS
SELECT * EXCEPT (latest)
FROM (SELECT *, max(attempt) OVER (PARTITION BY run_id) AS latest FROM runs)
WHERE attempt = latest AND state = 'finished';

CREATE OR REPLACE VIEW finished_summary
COMMENT 'risk_summary of finished runs'
AS
SELECT risk_summary.*
FROM risk_summary
LEFT SEMI JOIN finished_runs USING (run_id);

CREATE OR REPLACE VIEW latest_runs
COMMENT 'The last finished run per registry, release and settings'
AS
WITH evaluated AS (
  SELECT DISTINCT run_id, registry, release_id, settings_digest, release_date FROM risk_summary
),
ranked AS (
  SELECT
    evaluated.registry,
    evaluated.release_id,
    evaluated.settings_digest,
    run_id,
    finished_runs.attempt,
    finished_runs.command,
    evaluated.release_date,
    finished_runs.mlflow_run_id,
    finished_runs.started_at,
    finished_runs.ended_at,
    row_number() OVER (
      PARTITION BY evaluated.registry, evaluated.release_id, evaluated.settings_digest
      ORDER BY finished_runs.ended_at DESC, finished_runs.started_at DESC, run_id DESC
    ) AS place
  FROM evaluated
  JOIN finished_runs USING (run_id)
)
SELECT * EXCEPT (place) FROM ranked WHERE place = 1;

-- rapid_sd is the spread over replicates of the mean over attackers, with divisor m - 1: null for one replicate.
CREATE OR REPLACE VIEW release_risk (
  run_id COMMENT 'evaluation',
  registry COMMENT 'registry the release was made from',
  release_id COMMENT 'release under evaluation',
  qi_set COMMENT 'named set of quasi-identifiers',
  sensitive_attribute COMMENT 'attribute the attackers guess',
  measure COMMENT 'definition of the score',
  attackers COMMENT 'attackers with a figure',
  replicates COMMENT 'replicates with a figure, the pooled one apart',
  rapid_mean COMMENT 'mean over attackers of the mean over replicates',
  rapid_sd COMMENT 'standard deviation over replicates of the mean over attackers, divisor m - 1',
  rapid_pooled COMMENT 'largest over attackers who train on all replicates together',
  rapid_max COMMENT 'largest over attackers of the mean over replicates',
  worst_attacker COMMENT 'attacker of rapid_max; the first by name among equals',
  rapid_decisive COMMENT 'the larger of rapid_max and rapid_pooled: the figure to decide by',
  not_ok COMMENT 'combinations without a figure, undefined or failed'
)
COMMENT 'Risk of a release per attribute and set of quasi-identifiers, over attackers and replicates; original records'
AS
WITH combinations AS (
  SELECT
    run_id, registry, release_id, qi_set, sensitive_attribute, measure, attacker, replicate,
    CASE WHEN status = 'ok' THEN rapid END AS rapid
  FROM finished_summary
  WHERE scored_on = 'original' AND weighting = 'none'
),
-- One row per attacker, over replicates, and one per replicate, over attackers.
margins AS (
  SELECT
    run_id, registry, release_id, qi_set, sensitive_attribute, measure, attacker,
    grouping(attacker) = 0 AS of_attacker,
    avg(rapid) FILTER (WHERE replicate > 0) AS mean,
    max(rapid) FILTER (WHERE replicate = 0) AS pooled,
    count(rapid) AS figures,
    count(*) - count(rapid) AS not_ok
  FROM combinations
  GROUP BY GROUPING SETS (
    (run_id, registry, release_id, qi_set, sensitive_attribute, measure, attacker),
    (run_id, registry, release_id, qi_set, sensitive_attribute, measure, replicate)
  )
),
suite AS (
  SELECT
    run_id, registry, release_id, qi_set, sensitive_attribute, measure,
    count_if(of_attacker AND figures > 0) AS attackers,
    count(mean) FILTER (WHERE NOT of_attacker) AS replicates,
    avg(mean) FILTER (WHERE of_attacker) AS rapid_mean,
    stddev_samp(mean) FILTER (WHERE NOT of_attacker) AS rapid_sd,
    max(pooled) AS rapid_pooled,
    max(mean) FILTER (WHERE of_attacker) AS rapid_max,
    min(struct(-mean, attacker)) FILTER (WHERE of_attacker AND mean IS NOT NULL).attacker AS worst_attacker,
    sum(not_ok) FILTER (WHERE of_attacker) AS not_ok
  FROM margins
  GROUP BY ALL
)
SELECT
  run_id, registry, release_id, qi_set, sensitive_attribute, measure,
  attackers,
  replicates,
  rapid_mean,
  rapid_sd,
  rapid_pooled,
  rapid_max,
  worst_attacker,
  greatest(rapid_max, rapid_pooled) AS rapid_decisive,
  not_ok
FROM suite;

-- Shares need every record: where a store keeps only the records at risk (store.records), they are null.
CREATE OR REPLACE VIEW joint_risk (
  run_id COMMENT 'evaluation',
  registry COMMENT 'registry the release was made from',
  release_id COMMENT 'release under evaluation',
  qi_set COMMENT 'named set of quasi-identifiers',
  replicate COMMENT 'copy of the release, 0 for all copies together',
  measure COMMENT 'definition of the score',
  combinations COMMENT 'attributes times attackers that have a figure',
  n_records COMMENT 'records with an outcome in any of them',
  n_any COMMENT 'records at risk in at least one of them',
  share_any COMMENT 'share of records at risk in at least one of them',
  share_all COMMENT 'share of records at risk in each in which their outcome is defined',
  mean_count COMMENT 'mean number of them in which a record is at risk',
  complete COMMENT 'whether the store holds every record of these combinations'
)
COMMENT 'Risk of records over all attributes and attackers of a run together; original records'
AS
WITH of_record AS (
  SELECT
    run_id, registry, release_id, qi_set, replicate, measure, record_id,
    count(at_risk) AS defined,
    count_if(at_risk) AS hits
  FROM risk_records
  LEFT SEMI JOIN finished_runs USING (run_id)
  WHERE scored_on = 'original'
  GROUP BY ALL
  HAVING count(at_risk) > 0
),
joint AS (
  SELECT
    run_id, registry, release_id, qi_set, replicate, measure,
    count(*) AS n_records,
    count_if(hits > 0) AS n_any,
    count_if(hits = defined) AS n_all,
    sum(hits) AS hits,
    sum(defined) AS outcomes
  FROM of_record
  GROUP BY ALL
),
expected AS (
  SELECT run_id, registry, release_id, qi_set, replicate, measure, count(*) AS combinations, sum(n) AS outcomes
  FROM finished_summary
  WHERE scored_on = 'original' AND weighting = 'none' AND status = 'ok'
  GROUP BY ALL
)
SELECT
  run_id, registry, release_id, qi_set, replicate, measure,
  combinations,
  n_records,
  n_any,
  CASE WHEN joint.outcomes = expected.outcomes THEN n_any / n_records END AS share_any,
  CASE WHEN joint.outcomes = expected.outcomes THEN n_all / n_records END AS share_all,
  CASE WHEN joint.outcomes = expected.outcomes THEN hits / n_records END AS mean_count,
  joint.outcomes = expected.outcomes AS complete
FROM joint
JOIN expected USING (run_id, registry, release_id, qi_set, replicate, measure);

-- A release with a formal guarantee beside what the main job measured of it, under the same release_id.
CREATE OR REPLACE VIEW dp_release_risk (
  release_id COMMENT 'release',
  dataset COMMENT 'whose budget was charged',
  mechanism COMMENT 'what drew the noise',
  adjacency COMMENT 'which change of the data is covered',
  protected_unit COMMENT 'whose change is covered',
  epsilon COMMENT 'spent on the release, all its entries together',
  delta COMMENT 'spent on the release, all its entries together',
  run_id COMMENT 'evaluation',
  registry COMMENT 'registry the release was made from',
  qi_set COMMENT 'named set of quasi-identifiers',
  sensitive_attribute COMMENT 'attribute the attackers guess',
  measure COMMENT 'definition of the score',
  rapid_mean COMMENT 'mean over attackers of the mean over replicates',
  rapid_decisive COMMENT 'the figure to decide by',
  worst_attacker COMMENT 'attacker of the largest figure',
  label COMMENT 'RAPID reads the original: no epsilon covers it'
)
COMMENT 'RAPID of releases with differential privacy, beside their epsilon; original records'
AS
WITH spent AS (
  SELECT
    release_id, dataset, adjacency, protected_unit,
    array_join(sort_array(collect_set(mechanism)), ', ') AS mechanism,
    sum(epsilon) AS epsilon,
    sum(delta) AS delta
  FROM dp_ledger
  WHERE state = 'drawn'
  GROUP BY release_id, dataset, adjacency, protected_unit
)
SELECT
  spent.release_id,
  spent.dataset,
  spent.mechanism,
  spent.adjacency,
  spent.protected_unit,
  spent.epsilon,
  spent.delta,
  release_risk.run_id,
  release_risk.registry,
  release_risk.qi_set,
  release_risk.sensitive_attribute,
  release_risk.measure,
  release_risk.rapid_mean,
  release_risk.rapid_decisive,
  release_risk.worst_attacker,
  'computed from the original without noise; custodian only' AS label
FROM spent
JOIN release_risk ON release_risk.release_id = spent.release_id;
