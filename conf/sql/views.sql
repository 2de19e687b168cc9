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
-- One row per release and attribute: what registries and releases are compared by. Only the last run of each counts.
CREATE OR REPLACE VIEW release_figures (
  run_id COMMENT 'last finished run of this release under these settings',
  registry COMMENT 'registry the release was made from',
  release_id COMMENT 'release under evaluation',
  release_date COMMENT 'date of the release; of the evaluation where none is given',
  settings_digest COMMENT 'settings: figures under different ones are not comparable',
  qi_set COMMENT 'named set of quasi-identifiers',
  sensitive_attribute COMMENT 'attribute the attackers guess',
  measure COMMENT 'definition of the score',
  threshold COMMENT 'score from which, or error up to which, a record is at risk',
  n COMMENT 'records with a defined outcome, the most over attackers',
  rapid_decisive COMMENT 'the larger of rapid_max and rapid_pooled: the figure to decide by',
  upper_end COMMENT 'largest upper end of the intervals over attackers and replicates',
  worst_attacker COMMENT 'attacker of rapid_max',
  baseline_rate COMMENT 'what chance gives, for the worst attacker, mean over replicates',
  excess COMMENT 'rapid minus baseline_rate, for the worst attacker, mean over replicates',
  attackers COMMENT 'attackers with a figure',
  not_ok COMMENT 'combinations without a figure, undefined or failed'
)
COMMENT 'Figures of each release in its last run, per attribute and set of quasi-identifiers; original records'
AS
WITH combined AS (
  SELECT
    run_id, registry, release_id, settings_digest, qi_set, sensitive_attribute, measure,
    coalesce(max(release_date), max(to_date(evaluated_at))) AS release_date,
    max(threshold) AS threshold,
    max(n) AS n,
    max(ci_high) AS upper_end
  FROM finished_summary
  WHERE scored_on = 'original' AND weighting = 'none'
  GROUP BY ALL
),
of_attacker AS (
  SELECT
    run_id, registry, release_id, qi_set, sensitive_attribute, measure, attacker AS worst_attacker,
    avg(baseline_rate) AS baseline_rate,
    avg(excess) AS excess
  FROM finished_summary
  WHERE scored_on = 'original' AND weighting = 'none' AND status = 'ok' AND replicate > 0
  GROUP BY ALL
)
SELECT
  combined.run_id,
  combined.registry,
  combined.release_id,
  combined.release_date,
  combined.settings_digest,
  combined.qi_set,
  combined.sensitive_attribute,
  combined.measure,
  combined.threshold,
  combined.n,
  release_risk.rapid_decisive,
  combined.upper_end,
  release_risk.worst_attacker,
  of_attacker.baseline_rate,
  of_attacker.excess,
  release_risk.attackers,
  release_risk.not_ok
FROM combined
LEFT SEMI JOIN latest_runs
  ON combined.run_id = latest_runs.run_id
  AND combined.registry = latest_runs.registry
  AND combined.release_id = latest_runs.release_id
JOIN release_risk
  ON combined.run_id = release_risk.run_id
  AND combined.registry = release_risk.registry
  AND combined.release_id = release_risk.release_id
  AND combined.qi_set = release_risk.qi_set
  AND combined.sensitive_attribute = release_risk.sensitive_attribute
  AND combined.measure = release_risk.measure
LEFT JOIN of_attacker
  ON release_risk.run_id = of_attacker.run_id
  AND release_risk.registry = of_attacker.registry
  AND release_risk.release_id = of_attacker.release_id
  AND release_risk.qi_set = of_attacker.qi_set
  AND release_risk.sensitive_attribute = of_attacker.sensitive_attribute
  AND release_risk.measure = of_attacker.measure
  AND release_risk.worst_attacker = of_attacker.worst_attacker;

-- Raw rates: registries also differ in who is in them. audit_comparison has rates over one distribution of people.
CREATE OR REPLACE VIEW registry_comparison
COMMENT 'Registries side by side: the last release of each, the riskiest first, per attribute'
AS
SELECT
  sensitive_attribute,
  qi_set,
  measure,
  rank() OVER (PARTITION BY sensitive_attribute, qi_set, measure ORDER BY rapid_decisive DESC) AS place,
  registry,
  release_id,
  release_date,
  n,
  rapid_decisive,
  upper_end,
  baseline_rate,
  excess,
  worst_attacker,
  threshold,
  settings_digest,
  run_id
FROM (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY registry, qi_set, sensitive_attribute, measure
      ORDER BY release_date DESC, run_id DESC, release_id DESC
    ) AS age
  FROM release_figures
)
WHERE age = 1;

CREATE OR REPLACE VIEW release_history
COMMENT 'The releases of a registry over time, with the change to the one before under the same settings'
AS
SELECT
  registry,
  sensitive_attribute,
  qi_set,
  measure,
  release_id,
  release_date,
  n,
  rapid_decisive,
  upper_end,
  excess,
  lag(release_id) OVER series AS previous_release,
  rapid_decisive - lag(rapid_decisive) OVER series AS change,
  worst_attacker,
  settings_digest,
  run_id
FROM release_figures
WINDOW series AS (
  PARTITION BY registry, sensitive_attribute, qi_set, measure, settings_digest
  ORDER BY release_date, release_id
);

CREATE OR REPLACE VIEW worst_subgroups
COMMENT 'Groups by their risk under the attacker that is worst for them, riskiest first; without suppressed cells'
AS
WITH risky AS (
  SELECT
    run_id, registry, release_id, qi_set, sensitive_attribute, measure, columns, level,
    max_by(struct(attacker, replicate, n, n_at_risk, rapid, ci_low, ci_high), struct(rapid, -replicate, attacker)) AS worst
  FROM risk_subgroups
  LEFT SEMI JOIN latest_runs USING (run_id, registry, release_id)
  WHERE scored_on = 'original' AND weighting = 'none' AND NOT suppressed
  GROUP BY ALL
)
SELECT
  risky.registry,
  risky.release_id,
  risky.sensitive_attribute,
  risky.qi_set,
  risky.measure,
  row_number() OVER (
    PARTITION BY risky.run_id, risky.registry, risky.release_id, risky.qi_set, risky.sensitive_attribute, risky.measure
    ORDER BY worst.rapid DESC, worst.n DESC, columns, level
  ) AS place,
  array_join(zip_with(columns, level, (c, x) -> concat(c, ' = ', x)), ', ') AS people,
  worst.n,
  worst.n_at_risk,
  worst.rapid,
  worst.ci_low,
  worst.ci_high,
  release_figures.rapid_decisive AS rapid_of_all,
  worst.attacker,
  worst.replicate,
  columns,
  level,
  risky.run_id
FROM risky
JOIN release_figures
  ON risky.run_id = release_figures.run_id
  AND risky.registry = release_figures.registry
  AND risky.release_id = release_figures.release_id
  AND risky.qi_set = release_figures.qi_set
  AND risky.sensitive_attribute = release_figures.sensitive_attribute
  AND risky.measure = release_figures.measure;

-- An audit has settings per registry: the strictest goes for all.
CREATE OR REPLACE VIEW publication_rules (
  run_id COMMENT 'finished run',
  min_cell_count COMMENT 'counts of fewer people are withheld; the largest drivers.min_cell_count of the settings',
  rounding COMMENT 'base of rounded counts; the largest publish.rounding of the settings, null for exact counts'
)
COMMENT 'How figures of each finished run may be published'
AS
SELECT
  run_id,
  array_max(transform(regexp_extract_all(config, '"min_cell_count": *([0-9]+)', 1), x -> int(x))) AS min_cell_count,
  array_max(transform(regexp_extract_all(config, '"rounding": *([0-9]+)', 1), x -> int(x))) AS rounding
FROM finished_runs;

-- A band with fewer records than drivers.min_cell_count is withheld, and, where it is the only one, the next smallest too.
CREATE OR REPLACE VIEW records_by_band (
  registry COMMENT 'registry the release was made from',
  release_id COMMENT 'release under evaluation',
  sensitive_attribute COMMENT 'attribute the attacker guesses',
  qi_set COMMENT 'named set of quasi-identifiers',
  measure COMMENT 'definition of the score',
  attacker COMMENT 'attacker of the suite',
  replicate COMMENT 'copy of the release, 0 for all copies together',
  target_type COMMENT 'categorical: bands of the score; continuous: bands of the error',
  band COMMENT 'lower end of the band; null: no better than chance (categorical)',
  band_end COMMENT 'upper end of the band, which belongs to it; null: no limit',
  n COMMENT 'records in the band; null when withheld',
  n_at_risk COMMENT 'of them at risk; null when withheld',
  share COMMENT 'of all records with an outcome; null when withheld',
  withheld COMMENT 'whether the figures are withheld because the band has too few records',
  run_id COMMENT 'last finished run of this release'
)
COMMENT 'Records by band of the score (tenths) or of the prediction error, of the last run; original records'
AS
WITH scored AS (
  SELECT
    run_id, registry, release_id, sensitive_attribute, qi_set, measure, attacker, replicate,
    CASE WHEN error IS NULL THEN 'categorical' ELSE 'continuous' END AS target_type,
    CASE
      WHEN error IS NULL THEN CASE WHEN score > 0 THEN (ceil(round(score, 9) * 10) - 1) / 10 END
      WHEN error <= 0.01D THEN 0D
      WHEN error <= 0.05D THEN 0.01D
      WHEN error <= 0.1D THEN 0.05D
      WHEN error <= 0.2D THEN 0.1D
      WHEN error <= 0.5D THEN 0.2D
      ELSE 0.5D
    END AS band,
    at_risk
  FROM risk_records
  LEFT SEMI JOIN latest_runs USING (run_id, registry, release_id)
  WHERE scored_on = 'original' AND at_risk IS NOT NULL AND (error IS NOT NULL OR score IS NOT NULL)
),
counted AS (
  SELECT
    run_id, registry, release_id, sensitive_attribute, qi_set, measure, attacker, replicate, target_type, band,
    count(*) AS n,
    count_if(at_risk) AS n_at_risk
  FROM scored
  GROUP BY ALL
),
limited AS (
  SELECT
    counted.*,
    n < coalesce(min_cell_count, 10) AS small,
    sum(n) OVER combination AS n_all
  FROM counted
  JOIN publication_rules USING (run_id)
  WINDOW combination AS (
    PARTITION BY counted.run_id, registry, release_id, sensitive_attribute, qi_set, measure, attacker, replicate
  )
),
judged AS (
  SELECT
    *,
    small OR (
      count_if(small) OVER combination = 1
      AND row_number() OVER by_size = 2
    ) AS withheld
  FROM limited
  WINDOW
    combination AS (
      PARTITION BY run_id, registry, release_id, sensitive_attribute, qi_set, measure, attacker, replicate
    ),
    by_size AS (
      PARTITION BY run_id, registry, release_id, sensitive_attribute, qi_set, measure, attacker, replicate
      ORDER BY small DESC, n, band
    )
)
SELECT
  registry, release_id, sensitive_attribute, qi_set, measure, attacker, replicate, target_type,
  band,
  CASE
    WHEN target_type = 'categorical' THEN coalesce(round(band + 0.1, 1), 0)
    WHEN band = 0D THEN 0.01D
    WHEN band = 0.01D THEN 0.05D
    WHEN band = 0.05D THEN 0.1D
    WHEN band = 0.1D THEN 0.2D
    WHEN band = 0.2D THEN 0.5D
  END AS band_end,
  CASE WHEN NOT withheld THEN n END AS n,
  CASE WHEN NOT withheld THEN n_at_risk END AS n_at_risk,
  CASE WHEN NOT withheld THEN n / n_all END AS share,
  withheld,
  run_id
FROM judged;

-- Figures for readers outside: small counts withheld, 0 apart, and rounded as publish.rounding says.
CREATE OR REPLACE VIEW published_risk (
  registry COMMENT 'registry the release was made from',
  release_id COMMENT 'release under evaluation',
  release_date COMMENT 'date of the release; of the evaluation where none is given',
  sensitive_attribute COMMENT 'attribute the attacker guesses',
  qi_set COMMENT 'named set of quasi-identifiers',
  measure COMMENT 'definition of the score',
  attacker COMMENT 'attacker of the suite',
  replicate COMMENT 'copy of the release, 0 for all copies together',
  n COMMENT 'people, rounded; null when withheld',
  n_at_risk COMMENT 'people at risk, rounded; null when withheld, 0 when there is none',
  rapid COMMENT 'share of the rounded counts; null when withheld',
  baseline_rate COMMENT 'what chance gives, to three decimals',
  withheld COMMENT 'whether figures are withheld because they tell of few people',
  rounding COMMENT 'base of the rounded counts; null: exact',
  run_id COMMENT 'last finished run of this release'
)
COMMENT 'Risk of each release in its last run as it may be published: small counts withheld, counts rounded; original records'
AS
WITH ruled AS (
  SELECT
    run_id,
    rounding,
    greatest(coalesce(min_cell_count, 10), coalesce(rounding, 0)) AS least
  FROM publication_rules
),
judged AS (
  SELECT
    finished_summary.*,
    ruled.rounding,
    coalesce(ruled.rounding, 1) AS base,
    n < least AS few_people,
    n_at_risk IS NULL OR n < least OR (n_at_risk > 0 AND n_at_risk < least) OR n - n_at_risk < least AS withheld
  FROM finished_summary
  JOIN ruled USING (run_id)
  LEFT SEMI JOIN latest_runs USING (run_id, registry, release_id)
  WHERE scored_on = 'original' AND weighting = 'none' AND status = 'ok'
)
SELECT
  registry,
  release_id,
  coalesce(release_date, to_date(evaluated_at)) AS release_date,
  sensitive_attribute,
  qi_set,
  measure,
  attacker,
  replicate,
  CASE WHEN NOT few_people THEN CAST(floor(n / base + 0.5) * base AS bigint) END AS n,
  CASE WHEN NOT withheld THEN CAST(floor(n_at_risk / base + 0.5) * base AS bigint) END AS n_at_risk,
  CASE WHEN NOT withheld THEN floor(n_at_risk / base + 0.5) / floor(n / base + 0.5) END AS rapid,
  CASE WHEN NOT few_people THEN round(baseline_rate, 3) END AS baseline_rate,
  withheld,
  rounding,
  run_id
FROM judged;

-- A withheld rate is nearly 0 or nearly 1: a maximum over the others would mislead, so there is none.
CREATE OR REPLACE VIEW published_releases (
  registry COMMENT 'registry the release was made from',
  release_id COMMENT 'release under evaluation',
  release_date COMMENT 'date of the release; of the evaluation where none is given',
  sensitive_attribute COMMENT 'attribute the attackers guess',
  qi_set COMMENT 'named set of quasi-identifiers',
  measure COMMENT 'definition of the score',
  n COMMENT 'people, rounded; null when withheld',
  rapid COMMENT 'of rounded counts: the larger of the pooled rate and, over attackers, the mean over replicates; null when withheld',
  withheld COMMENT 'whether any of these figures is withheld because it tells of few people',
  is_latest COMMENT 'whether this is the last release of the registry with this attribute',
  run_id COMMENT 'last finished run of this release'
)
COMMENT 'Risk of each release as it may be published, per attribute; original records'
AS
WITH of_attacker AS (
  SELECT
    registry, release_id, release_date, sensitive_attribute, qi_set, measure, run_id, attacker,
    greatest(avg(rapid) FILTER (WHERE replicate > 0), max(rapid) FILTER (WHERE replicate = 0)) AS rapid,
    max(n) AS n,
    bool_or(withheld) AS withheld
  FROM published_risk
  GROUP BY ALL
),
of_release AS (
  SELECT
    registry, release_id, release_date, sensitive_attribute, qi_set, measure, run_id,
    CASE WHEN NOT bool_or(withheld) THEN max(rapid) END AS rapid,
    max(n) AS n,
    bool_or(withheld) AS withheld
  FROM of_attacker
  GROUP BY ALL
)
SELECT
  registry, release_id, release_date, sensitive_attribute, qi_set, measure, n, rapid, withheld,
  row_number() OVER (
    PARTITION BY registry, qi_set, sensitive_attribute, measure
    ORDER BY release_date DESC, run_id DESC, release_id DESC
  ) = 1 AS is_latest,
  run_id
FROM of_release;

CREATE OR REPLACE VIEW verdict_history
COMMENT 'Verdicts of finished audits, rule by rule, with the verdict by the same rule on the release before'
AS
WITH judged AS (
  SELECT audit_verdicts.*, finished_runs.ended_at
  FROM audit_verdicts
  JOIN finished_runs USING (run_id)
)
SELECT
  registry,
  release_id,
  sensitive_attribute,
  rule,
  verdict,
  figure,
  `limit`,
  reason,
  lag(release_id) OVER series AS previous_release,
  lag(verdict) OVER series AS previous_verdict,
  audience,
  purpose,
  valid_until,
  coalesce(evaluated_at, ended_at) AS judged_at,
  run_id
FROM judged
WINDOW series AS (
  PARTITION BY registry, sensitive_attribute, rule, audience ORDER BY coalesce(evaluated_at, ended_at), ended_at, release_id
);

-- A release is judged by the row `overall` of its audit; where there is none, by the worst of its rules.
CREATE OR REPLACE VIEW release_verdicts
COMMENT 'The verdict on each release for each audience, in its last audit'
AS
WITH judged AS (
  SELECT
    run_id, registry, release_id, audience,
    max(coalesce(evaluated_at, ended_at)) AS judged_at,
    max(valid_until) AS valid_until,
    count_if(rule <> 'overall') AS rules,
    count_if(rule <> 'overall' AND verdict = 'pass') AS passed,
    coalesce(
      max(verdict) FILTER (WHERE rule = 'overall'),
      CASE
        WHEN count_if(verdict = 'fail') > 0 THEN 'fail'
        WHEN count_if(verdict = 'not_evaluated') > 0 THEN 'not_evaluated'
        WHEN count_if(verdict = 'review') > 0 THEN 'review'
        ELSE 'pass'
      END
    ) AS verdict,
    array_join(sort_array(collect_set(rule) FILTER (WHERE rule <> 'overall' AND verdict <> 'pass')), ', ') AS not_passed
  FROM audit_verdicts
  JOIN finished_runs USING (run_id)
  GROUP BY ALL
),
ranked AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY registry, release_id, audience ORDER BY judged_at DESC, run_id DESC) AS age
  FROM judged
)
SELECT registry, release_id, audience, verdict, rules, passed, not_passed, valid_until, judged_at, run_id
FROM ranked
WHERE age = 1;

-- Due: a verdict that does not clear a release and on which nobody has decided; an approval, or a verdict that cleared,
-- that has ended or ends within 30 days.
CREATE OR REPLACE VIEW reviews_due
COMMENT 'Releases that wait for a decision, or whose clearance has ended or ends within 30 days'
AS
WITH last_decisions AS (
  SELECT registry, release_id, audience, outcome, valid_until, run_id
  FROM (
    SELECT *, row_number() OVER (PARTITION BY registry, release_id, audience ORDER BY decided_at DESC) AS age
    FROM release_decisions
  )
  WHERE age = 1
),
undecided AS (
  SELECT
    release_verdicts.registry,
    release_verdicts.release_id,
    release_verdicts.audience,
    concat_ws(': ', concat('no decision on verdict ', verdict), nullif(not_passed, '')) AS why,
    to_date(judged_at) AS due_on,
    release_verdicts.run_id
  FROM release_verdicts
  LEFT ANTI JOIN release_decisions
    ON release_verdicts.registry = release_decisions.registry
    AND release_verdicts.release_id = release_decisions.release_id
    AND release_verdicts.run_id = release_decisions.run_id
  WHERE verdict <> 'pass'
),
clearances AS (
  SELECT registry, release_id, audience, 'approval' AS what, valid_until, run_id
  FROM last_decisions
  WHERE outcome <> 'reject'
  UNION ALL
  SELECT registry, release_id, audience, 'verdict' AS what, valid_until, run_id
  FROM release_verdicts
  WHERE verdict = 'pass'
),
ending AS (
  SELECT
    registry,
    release_id,
    audience,
    concat(what, CASE WHEN valid_until < current_date() THEN ' has ended' ELSE ' ends soon' END) AS why,
    valid_until AS due_on,
    run_id
  FROM clearances
  WHERE valid_until <= date_add(current_date(), 30)
)
SELECT registry, release_id, audience, why, due_on, datediff(due_on, current_date()) AS days_left, run_id
FROM (SELECT * FROM undecided UNION ALL SELECT * FROM ending);
