-- The tables of a store, schema version 1: a contract. rapid_spark reads names, types and constraints from here.
-- One column a line. To create them by hand: USE SCHEMA catalog.schema, then this file, then views.sql.

CREATE TABLE IF NOT EXISTS runs (
  run_id string NOT NULL COMMENT 'evaluation',
  attempt int NOT NULL COMMENT 'number of the attempt at this run_id, from 1',
  state string NOT NULL COMMENT 'started, finished or failed: one row for the start and one for the end of an attempt',
  command string COMMENT 'command that was run',
  config string COMMENT 'configuration as JSON, without secrets',
  settings_digest string COMMENT 'SHA-256 of the settings that decide the figures',
  inputs string COMMENT 'JSON: names, Delta versions and row counts of what was read',
  table_versions string COMMENT 'JSON: Delta version of each table after this attempt wrote into it',
  package_versions string COMMENT 'JSON: versions of Python and of the libraries in use',
  mlflow_run_id string COMMENT 'parent run in MLflow',
  quasi_identifiers array<string> COMMENT 'columns an attacker is assumed to know, over all sets',
  release_date date COMMENT 'date of the release, where the run has one release',
  n_release bigint COMMENT 'rows of the release, where the run has one release',
  started_at timestamp COMMENT 'start of the attempt, UTC',
  ended_at timestamp COMMENT 'end of the attempt, UTC; null in the row of its start'
) USING delta
COMMENT 'Attempts at evaluations, append-only; figures count once the latest attempt of their run is finished'
TBLPROPERTIES ('rapid.schema_version' = '1');
ALTER TABLE runs ADD CONSTRAINT known_state CHECK (state in ('started', 'finished', 'failed'));
ALTER TABLE runs ADD CONSTRAINT attempt_from_one CHECK (attempt >= 1);

-- Minima and maxima of the first columns only: of all columns they took a third of the time of a large write.
CREATE TABLE IF NOT EXISTS risk_records (
  run_id string NOT NULL COMMENT 'evaluation',
  registry string NOT NULL COMMENT 'registry the release was made from',
  release_id string NOT NULL COMMENT 'release under evaluation',
  replicate int NOT NULL COMMENT 'copy of the release the attacker trained on, 1 to m; 0 for all copies together',
  scored_on string NOT NULL COMMENT 'original, or holdout: people who were not used to make the release',
  qi_set string NOT NULL COMMENT 'named set of quasi-identifiers',
  sensitive_attribute string NOT NULL COMMENT 'attribute the attacker guesses',
  measure string NOT NULL COMMENT 'definition of the score',
  attacker string NOT NULL COMMENT 'attacker of the suite',
  record_id string NOT NULL COMMENT 'key of the record',
  score double COMMENT 'score under the measure; null for a continuous attribute',
  true_prob double COMMENT 'probability the attacker gives to the true class',
  baseline double COMMENT 'prevalence of the true class in the original',
  error double COMMENT 'prediction error of a continuous attribute',
  at_risk boolean COMMENT 'whether the record is at risk; null where undefined',
  evaluated_at timestamp COMMENT 'time of the evaluation, UTC'
) USING delta
PARTITIONED BY (run_id)
COMMENT 'Restricted. One row per scored record and combination. A row confirms whether a guess made from the public release is right for this person, so even the flags are as sensitive as the attribute itself'
TBLPROPERTIES ('rapid.schema_version' = '1', 'delta.dataSkippingNumIndexedCols' = '4');
ALTER TABLE risk_records ADD CONSTRAINT known_scored_on CHECK (scored_on in ('original', 'holdout'));
ALTER TABLE risk_records ADD CONSTRAINT true_prob_is_a_share CHECK (true_prob is null or true_prob between 0 and 1);
ALTER TABLE risk_records ADD CONSTRAINT baseline_is_a_share CHECK (baseline is null or baseline between 0 and 1);

CREATE TABLE IF NOT EXISTS risk_summary (
  run_id string NOT NULL COMMENT 'evaluation',
  registry string NOT NULL COMMENT 'registry the release was made from',
  release_id string NOT NULL COMMENT 'release under evaluation',
  replicate int NOT NULL COMMENT 'copy of the release the attacker trained on, 1 to m; 0 for all copies together',
  scored_on string NOT NULL COMMENT 'original, or holdout: people who were not used to make the release',
  qi_set string NOT NULL COMMENT 'named set of quasi-identifiers',
  sensitive_attribute string NOT NULL COMMENT 'attribute the attacker guesses',
  target_type string COMMENT 'categorical or continuous',
  attacker string NOT NULL COMMENT 'attacker of the suite',
  measure string NOT NULL COMMENT 'definition of the score',
  weighting string NOT NULL COMMENT 'none, or survey: figures for the population the weights stand for',
  threshold double COMMENT 'score from which, or error up to which, a record is at risk',
  n bigint COMMENT 'denominator: records with a defined outcome',
  n_undefined bigint COMMENT 'records whose outcome is undefined, missing values among them',
  n_at_risk bigint COMMENT 'records at risk',
  rapid double COMMENT 'share of records at risk',
  ci_low double COMMENT 'lower end of the interval of rapid',
  ci_high double COMMENT 'upper end of the interval of rapid',
  ci_method string COMMENT 'method of the interval',
  confidence double COMMENT 'confidence of the interval',
  baseline_rate double COMMENT 'rate at which the same rule flags records when the guess says nothing about them',
  excess double COMMENT 'rapid minus baseline_rate',
  permutation_p double COMMENT 'p-value of rapid under the permutation null',
  null_mean double COMMENT 'mean of rapid under the permutation null',
  null_sd double COMMENT 'standard deviation of rapid under the permutation null',
  null_q95 double COMMENT '95 percent quantile of rapid under the permutation null',
  holdout_rate double COMMENT 'rapid of people who were not used to make the release',
  holdout_difference double COMMENT 'rapid minus holdout_rate',
  holdout_difference_low double COMMENT 'lower end of its interval',
  holdout_difference_high double COMMENT 'upper end of its interval',
  n_confident_claims bigint COMMENT 'records for which the attacker would claim a class with confidence',
  claims_correct double COMMENT 'share of confident claims that are right',
  sensitive_levels_rate double COMMENT 'rapid over the records with a level declared sensitive',
  accuracy double COMMENT 'share of records whose class the attacker guesses right',
  macro_f1 double COMMENT 'F1 of the classes, averaged',
  log_loss double COMMENT 'log loss of the attacker',
  auc double COMMENT 'area under the ROC curve',
  mae double COMMENT 'mean absolute error, in the unit of the attribute',
  rmse double COMMENT 'root of the mean squared error, in the unit of the attribute',
  r2 double COMMENT 'coefficient of determination',
  majority_rate double COMMENT 'accuracy of always guessing the most frequent class',
  n_train bigint COMMENT 'release rows the attacker trained on',
  n_dropped bigint COMMENT 'original records left out because their sensitive value is missing',
  n_unseen_level bigint COMMENT 'records with a quasi-identifier level that the release does not have',
  n_unseen_class bigint COMMENT 'records whose class the release does not have',
  seed bigint COMMENT 'seed of the run',
  status string NOT NULL COMMENT 'ok; undefined for a reason in the data; failed',
  reason string COMMENT 'why the status is not ok',
  fit_seconds double COMMENT 'seconds of fitting the attacker',
  score_seconds double COMMENT 'seconds of scoring; what combinations share is divided among them',
  original_digest string COMMENT 'digest of the original as it was read',
  release_digest string COMMENT 'digest of the release as it was read',
  settings_digest string COMMENT 'SHA-256 of the settings that decide the figures',
  package_version string COMMENT 'version of rapid_spark',
  evaluated_at timestamp COMMENT 'time of the evaluation, UTC',
  quasi_identifiers array<string> COMMENT 'columns of the set',
  release_date date COMMENT 'date of the release',
  n_release bigint COMMENT 'rows of the release',
  population_reference double COMMENT 'rate of an attacker who trains on other people of the original, by folds',
  copy_ceiling double COMMENT 'rate of an attacker who trains on the original itself',
  holdout_difference_own double COMMENT 'the same difference with each table scored under its own prevalences',
  relative_mae double COMMENT 'mean of |y - guess| / |y| over records with y not 0',
  rapid_within_strata double COMMENT 'share at risk with prevalences within the strata of baseline.by',
  near_threshold double COMMENT 'share of records whose value lies within two standard deviations of its class threshold; large with atoms there, and then no bootstrap is consistent',
  data_driven_threshold double COMMENT 'last threshold of the fixed sequence whose rate exceeds the permutation null; null: none',
  exploratory_threshold double COMMENT 'the same, threshold by threshold: finds one in many independent targets too',
  n_persons bigint COMMENT 'persons, where columns.person is configured',
  person_rapid double COMMENT 'share of persons with any record at risk',
  person_ci_low double COMMENT 'lower end of its Wilson interval',
  person_ci_high double COMMENT 'upper end of its Wilson interval',
  n_households bigint COMMENT 'households, where columns.household is configured',
  household_rapid double COMMENT 'share of households with any record at risk',
  household_ci_low double COMMENT 'lower end of its Wilson interval',
  household_ci_high double COMMENT 'upper end of its Wilson interval',
  n_without_known bigint COMMENT 'records in none of the relations that everybody knows (drivers.exclude_relations); null when suppressed',
  rapid_without_known double COMMENT 'share of these at risk',
  n_effective double COMMENT 'records that would give the variance of the rate if flags were independent; the interval at any confidence follows',
  weight_sum double COMMENT 'survey weights of the records in n together; null where unweighted'
) USING delta
PARTITIONED BY (run_id)
COMMENT 'One row per combination, also when it could not be computed'
TBLPROPERTIES ('rapid.schema_version' = '1');
ALTER TABLE risk_summary ADD CONSTRAINT known_scored_on CHECK (scored_on in ('original', 'holdout'));
ALTER TABLE risk_summary ADD CONSTRAINT known_status CHECK (status in ('ok', 'undefined', 'failed'));
ALTER TABLE risk_summary ADD CONSTRAINT known_weighting CHECK (weighting in ('none', 'survey'));
ALTER TABLE risk_summary ADD CONSTRAINT rapid_is_a_share CHECK (rapid is null or rapid between 0 and 1);
ALTER TABLE risk_summary ADD CONSTRAINT at_risk_within_n CHECK (n_at_risk is null or n is null or n_at_risk between 0 and n);

CREATE TABLE IF NOT EXISTS risk_curve (
  run_id string NOT NULL COMMENT 'evaluation',
  registry string NOT NULL COMMENT 'registry the release was made from',
  release_id string NOT NULL COMMENT 'release under evaluation',
  replicate int NOT NULL COMMENT 'copy of the release the attacker trained on, 1 to m; 0 for all copies together',
  scored_on string NOT NULL COMMENT 'original or holdout',
  qi_set string NOT NULL COMMENT 'named set of quasi-identifiers',
  sensitive_attribute string NOT NULL COMMENT 'attribute the attacker guesses',
  attacker string NOT NULL COMMENT 'attacker of the suite',
  measure string NOT NULL COMMENT 'definition of the score',
  weighting string NOT NULL COMMENT 'none or survey',
  threshold double NOT NULL COMMENT 'threshold, or tolerance of a continuous attribute',
  n_at_risk bigint COMMENT 'records at risk at this threshold',
  rapid double COMMENT 'share of records at risk at this threshold',
  ci_low double COMMENT 'lower end of its interval',
  ci_high double COMMENT 'upper end of its interval',
  baseline_rate double COMMENT 'rate when targets are shuffled against predictions, at this threshold; categorical'
) USING delta
PARTITIONED BY (run_id)
COMMENT 'The share at risk over a grid of thresholds, per combination'
TBLPROPERTIES ('rapid.schema_version' = '1');
ALTER TABLE risk_curve ADD CONSTRAINT rapid_is_a_share CHECK (rapid is null or rapid between 0 and 1);

CREATE TABLE IF NOT EXISTS risk_classes (
  run_id string NOT NULL COMMENT 'evaluation',
  registry string NOT NULL COMMENT 'registry the release was made from',
  release_id string NOT NULL COMMENT 'release under evaluation',
  replicate int NOT NULL COMMENT 'copy of the release the attacker trained on, 1 to m; 0 for all copies together',
  scored_on string NOT NULL COMMENT 'original or holdout',
  qi_set string NOT NULL COMMENT 'named set of quasi-identifiers',
  sensitive_attribute string NOT NULL COMMENT 'attribute the attacker guesses',
  attacker string NOT NULL COMMENT 'attacker of the suite',
  measure string NOT NULL COMMENT 'definition of the score',
  weighting string NOT NULL COMMENT 'none or survey',
  class_label string NOT NULL COMMENT 'class of the sensitive attribute',
  class_rank int COMMENT '1 for the most frequent class',
  prevalence double COMMENT 'share of the class in the original',
  n bigint COMMENT 'records of the class with a defined outcome',
  n_at_risk bigint COMMENT 'records of the class at risk',
  rapid double COMMENT 'share of the class at risk',
  mean_true_prob double COMMENT 'mean probability the attacker gives to the class where it is true',
  n_confident_claims bigint COMMENT 'records for which the attacker would claim this class with confidence',
  claims_correct double COMMENT 'share of these claims that are right'
) USING delta
PARTITIONED BY (run_id)
COMMENT 'Risk by class of a categorical attribute, per combination'
TBLPROPERTIES ('rapid.schema_version' = '1');
ALTER TABLE risk_classes ADD CONSTRAINT rapid_is_a_share CHECK (rapid is null or rapid between 0 and 1);

CREATE TABLE IF NOT EXISTS risk_subgroups (
  run_id string NOT NULL COMMENT 'evaluation',
  registry string NOT NULL COMMENT 'registry the release was made from',
  release_id string NOT NULL COMMENT 'release under evaluation',
  replicate int NOT NULL COMMENT 'copy of the release the attacker trained on, 1 to m; 0 for all copies together',
  scored_on string NOT NULL COMMENT 'original or holdout',
  qi_set string NOT NULL COMMENT 'named set of quasi-identifiers',
  sensitive_attribute string NOT NULL COMMENT 'attribute the attacker guesses',
  attacker string NOT NULL COMMENT 'attacker of the suite',
  measure string NOT NULL COMMENT 'definition of the score',
  weighting string NOT NULL COMMENT 'none or survey',
  columns array<string> NOT NULL COMMENT 'quasi-identifiers that define the group: one, or a pair',
  level array<string> NOT NULL COMMENT 'their levels, or bins of a numeric one, in the same order',
  n bigint COMMENT 'records of the group with a defined outcome; null when suppressed',
  n_at_risk bigint COMMENT 'records of the group at risk; null when suppressed',
  rapid double COMMENT 'share of the group at risk; null when suppressed',
  ci_low double COMMENT 'lower end of its interval; null when suppressed',
  ci_high double COMMENT 'upper end of its interval; null when suppressed',
  suppressed boolean NOT NULL COMMENT 'whether the figures are withheld because the cell could tell of a person'
) USING delta
PARTITIONED BY (run_id)
COMMENT 'Risk by level or bin of the quasi-identifiers; cells that could tell of a person are suppressed'
TBLPROPERTIES ('rapid.schema_version' = '1');
ALTER TABLE risk_subgroups ADD CONSTRAINT rapid_is_a_share CHECK (rapid is null or rapid between 0 and 1);
ALTER TABLE risk_subgroups ADD CONSTRAINT suppressed_is_empty CHECK (not suppressed or (n is null and n_at_risk is null and rapid is null and ci_low is null and ci_high is null));

CREATE TABLE IF NOT EXISTS risk_patterns (
  run_id string NOT NULL COMMENT 'evaluation',
  registry string NOT NULL COMMENT 'registry the release was made from',
  release_id string NOT NULL COMMENT 'release under evaluation',
  replicate int NOT NULL COMMENT 'copy of the release the attacker trained on, 1 to m; 0 for all copies together',
  scored_on string NOT NULL COMMENT 'original or holdout',
  qi_set string NOT NULL COMMENT 'named set of quasi-identifiers',
  sensitive_attribute string NOT NULL COMMENT 'attribute the attacker guesses',
  attacker string NOT NULL COMMENT 'attacker of the suite',
  measure string NOT NULL COMMENT 'definition of the score',
  weighting string NOT NULL COMMENT 'none or survey',
  columns array<string> NOT NULL COMMENT 'quasi-identifiers of the pattern',
  level array<string> NOT NULL COMMENT 'their levels or bins, in the same order',
  n bigint COMMENT 'records with the pattern and a defined outcome; null when suppressed',
  n_at_risk bigint COMMENT 'records with the pattern at risk; null when suppressed',
  rapid double COMMENT 'share of them at risk; null when suppressed',
  ci_low double COMMENT 'lower end of its interval; null when suppressed',
  ci_high double COMMENT 'upper end of its interval; null when suppressed',
  suppressed boolean NOT NULL COMMENT 'whether the figures are withheld because the cell could tell of a person'
) USING delta
PARTITIONED BY (run_id)
COMMENT 'Patterns of quasi-identifiers that carry most of the risk; cells that could tell of a person are suppressed'
TBLPROPERTIES ('rapid.schema_version' = '1');
ALTER TABLE risk_patterns ADD CONSTRAINT rapid_is_a_share CHECK (rapid is null or rapid between 0 and 1);
ALTER TABLE risk_patterns ADD CONSTRAINT suppressed_is_empty CHECK (not suppressed or (n is null and n_at_risk is null and rapid is null and ci_low is null and ci_high is null));

CREATE TABLE IF NOT EXISTS risk_attribution (
  run_id string NOT NULL COMMENT 'evaluation',
  registry string NOT NULL COMMENT 'registry the release was made from',
  release_id string NOT NULL COMMENT 'release under evaluation',
  replicate int NOT NULL COMMENT 'copy of the release the attacker trained on, 1 to m; 0 for all copies together',
  scored_on string NOT NULL COMMENT 'original or holdout',
  qi_set string NOT NULL COMMENT 'named set of quasi-identifiers',
  sensitive_attribute string NOT NULL COMMENT 'attribute the attacker guesses',
  attacker string NOT NULL COMMENT 'attacker of the suite',
  measure string NOT NULL COMMENT 'definition of the score',
  weighting string NOT NULL COMMENT 'none or survey',
  term string NOT NULL COMMENT 'quasi-identifier, its level, or an interaction',
  kind string NOT NULL COMMENT 'coefficient, marginal_effect, alone (rapid with this quasi-identifier only) or left_out (without it)',
  estimate double COMMENT 'log odds of a coefficient, otherwise a difference of shares or a share',
  std_error double COMMENT 'standard error of the estimate',
  ci_low double COMMENT 'lower end of its interval',
  ci_high double COMMENT 'upper end of its interval'
) USING delta
PARTITIONED BY (run_id)
COMMENT 'Which quasi-identifiers carry the risk, per combination'
TBLPROPERTIES ('rapid.schema_version' = '1');
ALTER TABLE risk_attribution ADD CONSTRAINT known_kind CHECK (kind in ('coefficient', 'marginal_effect', 'alone', 'left_out'));

CREATE TABLE IF NOT EXISTS risk_distributions (
  run_id string NOT NULL COMMENT 'evaluation',
  registry string NOT NULL COMMENT 'registry the release was made from',
  release_id string NOT NULL COMMENT 'release under evaluation',
  replicate int NOT NULL COMMENT 'copy of the release the attacker trained on, 1 to m; 0 for all copies together',
  scored_on string NOT NULL COMMENT 'original or holdout',
  qi_set string NOT NULL COMMENT 'named set of quasi-identifiers',
  sensitive_attribute string NOT NULL COMMENT 'attribute the attacker guesses',
  attacker string NOT NULL COMMENT 'attacker of the suite',
  measure string NOT NULL COMMENT 'definition of the score',
  weighting string NOT NULL COMMENT 'none or survey',
  kind string NOT NULL COMMENT 'score (its histogram by true class) or calibration (probability said against share found)',
  class_label string NOT NULL COMMENT 'class of the sensitive attribute',
  bin_low double NOT NULL COMMENT 'lower end of the bin, not in it (calibration: in it)',
  bin_high double NOT NULL COMMENT 'upper end of the bin',
  n bigint COMMENT 'records in the bin; bins are joined until none could tell of a person',
  mean_prob double COMMENT 'calibration: mean probability given to the class',
  observed double COMMENT 'calibration: share of the records whose class it is'
) USING delta
PARTITIONED BY (run_id)
COMMENT 'How scores are spread by true class, and how far the attacker can be believed, per combination'
TBLPROPERTIES ('rapid.schema_version' = '1');
ALTER TABLE risk_distributions ADD CONSTRAINT known_kind CHECK (kind in ('score', 'calibration'));

CREATE TABLE IF NOT EXISTS risk_relations (
  run_id string NOT NULL COMMENT 'evaluation',
  registry string NOT NULL COMMENT 'registry the release was made from',
  release_id string NOT NULL COMMENT 'release under evaluation',
  replicate int NOT NULL COMMENT 'copy of the release the attacker trained on, 1 to m; 0 for all copies together',
  scored_on string NOT NULL COMMENT 'original or holdout',
  qi_set string NOT NULL COMMENT 'named set of quasi-identifiers',
  sensitive_attribute string NOT NULL COMMENT 'attribute the attacker guesses',
  attacker string NOT NULL COMMENT 'attacker of the suite',
  measure string NOT NULL COMMENT 'definition of the score',
  weighting string NOT NULL COMMENT 'none or survey',
  quasi_identifier string NOT NULL COMMENT 'column of the relation',
  level string NOT NULL COMMENT 'its level, or bin of a numeric one',
  class_label string NOT NULL COMMENT 'class of the sensitive attribute',
  known boolean NOT NULL COMMENT 'whether drivers.exclude_relations names it as known to everybody',
  n bigint NOT NULL COMMENT 'records of the level and class with a defined outcome',
  n_at_risk bigint NOT NULL COMMENT 'those of them at risk',
  rapid double COMMENT 'share of them at risk',
  share_of_flags double COMMENT 'share of all records at risk that they are'
) USING delta
PARTITIONED BY (run_id)
COMMENT 'Pairs of level and class that carry most records at risk; pairs that could tell of a person are left out'
TBLPROPERTIES ('rapid.schema_version' = '1');
ALTER TABLE risk_relations ADD CONSTRAINT rapid_is_a_share CHECK (rapid is null or rapid between 0 and 1);

CREATE TABLE IF NOT EXISTS risk_joint (
  run_id string NOT NULL COMMENT 'evaluation',
  registry string NOT NULL COMMENT 'registry the release was made from',
  release_id string NOT NULL COMMENT 'release under evaluation',
  scored_on string NOT NULL COMMENT 'original or holdout',
  qi_set string NOT NULL COMMENT 'named set of quasi-identifiers',
  across string NOT NULL COMMENT 'what is taken together: attributes, attackers, replicates, or everything',
  sensitive_attribute string COMMENT 'the one attribute; null where it is taken over',
  attacker string COMMENT 'the one attacker; null where it is taken over',
  replicate int COMMENT 'the one copy, 0 for all copies together; null where it is taken over',
  combinations int NOT NULL COMMENT 'outcomes per record that are taken together',
  n bigint NOT NULL COMMENT 'records with an outcome in any of them',
  n_any bigint NOT NULL COMMENT 'records at risk in at least one',
  share_any double COMMENT 'share of records at risk in at least one',
  n_all bigint NOT NULL COMMENT 'records at risk in each in which their outcome is defined',
  share_all double COMMENT 'share of records at risk in each in which their outcome is defined',
  mean_count double COMMENT 'mean number in which a record is at risk',
  counts array<bigint> NOT NULL COMMENT 'records at risk in exactly 0, 1, 2 and so on of them'
) USING delta
PARTITIONED BY (run_id)
COMMENT 'Records at risk in any, in all and in how many of several attributes, attackers and replicates'
TBLPROPERTIES ('rapid.schema_version' = '1');
ALTER TABLE risk_joint ADD CONSTRAINT shares CHECK ((share_any is null or share_any between 0 and 1) and (share_all is null or share_all between 0 and 1));

CREATE TABLE IF NOT EXISTS audit_verdicts (
  run_id string NOT NULL COMMENT 'audit or evaluation',
  registry string NOT NULL COMMENT 'registry the release was made from',
  release_id string NOT NULL COMMENT 'release that was judged',
  sensitive_attribute string COMMENT 'attribute the rule was applied to; null for a rule about the whole release',
  rule string NOT NULL COMMENT 'rule of the policy, or overall: the verdict on the release',
  audience string COMMENT 'to whom the release goes, as the policy context says',
  purpose string COMMENT 'what for, as the policy context says',
  `limit` double COMMENT 'limit of the rule',
  figure double COMMENT 'figure that was compared with the limit; null where there is none',
  verdict string NOT NULL COMMENT 'pass, review, fail or not_evaluated',
  reason string COMMENT 'why, in words',
  valid_until date COMMENT 'day after which the verdict no longer clears the release',
  evaluated_at timestamp COMMENT 'time of the evaluation, UTC'
) USING delta
PARTITIONED BY (run_id)
COMMENT 'What a policy says of each release, rule by rule'
TBLPROPERTIES ('rapid.schema_version' = '1');
ALTER TABLE audit_verdicts ADD CONSTRAINT known_verdict CHECK (verdict in ('pass', 'review', 'fail', 'not_evaluated'));

CREATE TABLE IF NOT EXISTS audit_comparison (
  run_id string NOT NULL COMMENT 'audit',
  registry string NOT NULL COMMENT 'registry that is compared with others',
  release_id string NOT NULL COMMENT 'its latest release in the audit',
  qi_set string NOT NULL COMMENT 'named set of quasi-identifiers',
  sensitive_attribute string NOT NULL COMMENT 'attribute the attacker guesses',
  measure string NOT NULL COMMENT 'definition of the score',
  attacker string NOT NULL COMMENT 'attacker, with the same settings for all registries',
  n bigint COMMENT 'records with a defined outcome',
  rapid double COMMENT 'share of them at risk; a mean over copies',
  ci_low double COMMENT 'lower end of its interval',
  ci_high double COMMENT 'upper end of its interval',
  standardised double COMMENT 'share at risk if the registry had the common distribution of quasi-identifiers',
  standardised_low double COMMENT 'lower end of its interval',
  standardised_high double COMMENT 'upper end of its interval',
  coverage double COMMENT 'share of the common distribution in strata that every registry fills',
  compared_with string COMMENT 'the registry, or the mean of the others, the differences are to',
  difference double COMMENT 'rapid minus that of what it is compared with',
  difference_low double COMMENT 'lower end of its interval',
  difference_high double COMMENT 'upper end of its interval',
  standardised_difference double COMMENT 'the same of the standardised rates',
  standardised_difference_low double COMMENT 'lower end of its interval',
  standardised_difference_high double COMMENT 'upper end of its interval',
  note string COMMENT 'why there is no comparison, or none of standardised rates',
  evaluated_at timestamp COMMENT 'time of the evaluation, UTC'
) USING delta
PARTITIONED BY (run_id)
COMMENT 'Registries of an audit side by side, raw and standardised to one distribution of quasi-identifiers'
TBLPROPERTIES ('rapid.schema_version' = '1');
ALTER TABLE audit_comparison ADD CONSTRAINT rates_are_shares CHECK ((rapid is null or rapid between 0 and 1) and (standardised is null or standardised between 0 and 1));

CREATE TABLE IF NOT EXISTS release_decisions (
  run_id string NOT NULL COMMENT 'evaluation or audit the decision rests on',
  registry string NOT NULL COMMENT 'registry the release was made from',
  release_id string NOT NULL COMMENT 'release that was decided on',
  outcome string NOT NULL COMMENT 'approve, approve_with_conditions or reject',
  decided_by string NOT NULL COMMENT 'who decided',
  reason string COMMENT 'why; needed where a fail or a not_evaluated is overridden',
  audience string COMMENT 'to whom the release may go',
  valid_until date COMMENT 'day after which the approval has ended',
  release_digest string COMMENT 'digest of the content that was decided on',
  decided_at timestamp NOT NULL COMMENT 'time of the decision, UTC'
) USING delta
COMMENT 'Decisions of people on releases, append-only'
TBLPROPERTIES ('rapid.schema_version' = '1', 'delta.appendOnly' = 'true');
ALTER TABLE release_decisions ADD CONSTRAINT known_outcome CHECK (outcome in ('approve', 'approve_with_conditions', 'reject'));

CREATE TABLE IF NOT EXISTS risk_attacks (
  run_id string NOT NULL COMMENT 'run of the attack',
  registry string COMMENT 'registry the release was made from',
  release_id string NOT NULL COMMENT 'release that was attacked',
  attack string NOT NULL COMMENT 'kind of attack',
  attacker string NOT NULL COMMENT 'attacker or statistic',
  epsilon_claimed double COMMENT 'epsilon that was claimed for the release',
  n bigint COMMENT 'plays or records',
  accuracy double COMMENT 'balanced accuracy, or the rate of success',
  accuracy_low double COMMENT 'lower end of its interval',
  accuracy_high double COMMENT 'upper end of its interval',
  auc double COMMENT 'area under the ROC curve',
  tpr_at_1pct_fpr double COMMENT 'true positive rate at a false positive rate of 1 percent',
  chance double COMMENT 'success of guessing',
  epsilon_lower_bound double COMMENT 'largest epsilon that the attack proves was spent',
  status string NOT NULL COMMENT 'ok, undefined or failed',
  reason string COMMENT 'why there is no figure, or what the verdict rests on',
  evaluated_at timestamp COMMENT 'time of the attack, UTC',
  replicate int COMMENT 'copy of the release, 1 to m; null where no copy is attacked',
  qi_set string COMMENT 'named set of quasi-identifiers that the attacker knows',
  sensitive_attribute string COMMENT 'attribute the attacker reads',
  auc_low double COMMENT 'lower end of the interval of auc',
  auc_high double COMMENT 'upper end of the interval of auc',
  control double COMMENT 'success of the same attack on people who were not used to make the release',
  difference double COMMENT 'accuracy less control',
  difference_low double COMMENT 'lower end of its interval',
  difference_high double COMMENT 'upper end of its interval',
  mechanism string COMMENT 'mechanism that drew the noise',
  adjacency string COMMENT 'add_remove or replace: how the attacked pair differs',
  delta_claimed double COMMENT 'delta that was claimed',
  bound double COMMENT 'largest accuracy that the claim allows for the attacked pair',
  optimum double COMMENT 'largest accuracy that any attacker can have on this mechanism',
  p_value double COMMENT 'of the test of the claim by this attacker alone',
  verdict string COMMENT 'leak, no_leak_found, not_tested; of a claim violated, not_violated, not_evaluated'
) USING delta
PARTITIONED BY (run_id)
COMMENT 'Attacks on releases beside RAPID; computed from the original without noise, for the custodian only'
TBLPROPERTIES ('rapid.schema_version' = '1');
ALTER TABLE risk_attacks ADD CONSTRAINT known_status CHECK (status in ('ok', 'undefined', 'failed'));

CREATE TABLE IF NOT EXISTS release_utility (
  run_id string NOT NULL COMMENT 'run that measured it',
  registry string COMMENT 'registry the release was made from',
  release_id string NOT NULL COMMENT 'release that was measured',
  measure string NOT NULL COMMENT 'measure of utility',
  columns array<string> COMMENT 'columns it is about',
  value double COMMENT 'its value; null where undefined',
  evaluated_at timestamp COMMENT 'time of the measurement, UTC'
) USING delta
PARTITIONED BY (run_id)
COMMENT 'How useful a release is; computed from the original without noise, for the custodian only'
TBLPROPERTIES ('rapid.schema_version' = '1');

CREATE TABLE IF NOT EXISTS disclosure_measures (
  run_id string NOT NULL COMMENT 'run that measured it',
  registry string COMMENT 'registry the release was made from',
  release_id string NOT NULL COMMENT 'release that was measured',
  replicate int COMMENT 'copy of the release, 1 to m; 0 for all together',
  qi_set string COMMENT 'named set of quasi-identifiers; null for measures over all shared columns',
  sensitive_attribute string COMMENT 'target; null for measures of keys or whole records',
  attacker string COMMENT 'attacker of a RAPID row',
  name string NOT NULL COMMENT 'measure, such as k_anonymity',
  value double COMMENT 'its value; null unless status is ok',
  n bigint COMMENT 'records it is about',
  definition string COMMENT 'what it is',
  direction string COMMENT 'higher is worse, or higher is better',
  status string NOT NULL COMMENT 'ok, undefined or not_evaluated',
  reason string COMMENT 'why there is no figure',
  evaluated_at timestamp COMMENT 'time of the measurement, UTC'
) USING delta
PARTITIONED BY (run_id)
COMMENT 'Classical disclosure measures beside RAPID; computed from the original without noise, for the custodian only'
TBLPROPERTIES ('rapid.schema_version' = '1');
ALTER TABLE disclosure_measures ADD CONSTRAINT known_status CHECK (status in ('ok', 'undefined', 'not_evaluated'));

CREATE TABLE IF NOT EXISTS dp_ledger (
  entry_id string NOT NULL COMMENT 'entry; its two rows share it',
  dataset string NOT NULL COMMENT 'population of persons whose budget is charged',
  derived_from string COMMENT 'dataset this one was made from, where the charge goes to that one',
  release_id string COMMENT 'release the entry pays for',
  run_id string COMMENT 'run that drew it',
  mechanism string NOT NULL COMMENT 'mechanism, or budget: the row that sets the limit',
  adjacency string NOT NULL COMMENT 'add_remove or replace',
  protected_unit string COMMENT 'what the guarantee protects: a record or a person',
  epsilon double COMMENT 'epsilon charged, or the limit',
  delta double COMMENT 'delta charged, or the limit',
  rho double COMMENT 'rho charged, where the filter adds rho',
  sensitivity double COMMENT 'sensitivity the noise was calibrated to',
  parameters string COMMENT 'declared parameters as JSON; nothing read off the data',
  entered_at timestamp NOT NULL COMMENT 'time of the row, UTC',
  state string NOT NULL COMMENT 'entered (before the noise) and drawn (after the release is stored), two rows per entry; budget: the row that sets a limit'
) USING delta
COMMENT 'What was spent on each dataset, append-only'
TBLPROPERTIES ('rapid.schema_version' = '1', 'delta.appendOnly' = 'true', 'delta.isolationLevel' = 'Serializable');
ALTER TABLE dp_ledger ADD CONSTRAINT known_state CHECK (state in ('entered', 'drawn', 'budget'));
ALTER TABLE dp_ledger ADD CONSTRAINT known_adjacency CHECK (adjacency in ('add_remove', 'replace'));

CREATE TABLE IF NOT EXISTS exports (
  run_id string NOT NULL COMMENT 'run whose figures were exported',
  registry string NOT NULL COMMENT 'registry the figures are about',
  release_id string NOT NULL COMMENT 'release the figures are about',
  rounding int COMMENT 'base of the rounded counts; null for exact ones',
  min_cell_count int COMMENT 'counts of fewer people were withheld',
  sha256 string COMMENT 'digest of the file',
  exported_at timestamp NOT NULL COMMENT 'time of the export, UTC'
) USING delta
COMMENT 'Figures that left the store, append-only: what is exported next is held against them'
TBLPROPERTIES ('rapid.schema_version' = '1', 'delta.appendOnly' = 'true');
