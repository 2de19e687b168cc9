-- Ten questions of a data protection officer. The README shows them with their output on the demo audit.
-- rapid-spark query --store ./rapid-store "..."

-- 1. Which releases are cleared, and which are not?
SELECT registry, release_id, verdict, rules, passed, not_passed
FROM release_verdicts
ORDER BY registry, release_id;

-- 2. Why was a release stopped?
SELECT registry, release_id, sensitive_attribute, rule, verdict, round(figure, 3) AS figure, `limit`
FROM verdict_history
WHERE verdict <> 'pass' AND rule <> 'overall'
ORDER BY registry, release_id, sensitive_attribute, rule;

-- 3. Which registry gives away most with its last release?
SELECT sensitive_attribute, place, registry, release_id, n, round(rapid_decisive, 3) AS rapid, round(excess, 3) AS excess
FROM registry_comparison
ORDER BY sensitive_attribute, place, registry;

-- 4. Does the risk rise from release to release?
SELECT registry, sensitive_attribute, previous_release, release_id, round(rapid_decisive, 3) AS rapid, round(change, 3) AS change
FROM release_history
WHERE change IS NOT NULL
ORDER BY change DESC, registry, sensitive_attribute, release_id
LIMIT 8;

-- 5. For whom is the risk greatest?
SELECT registry, release_id, sensitive_attribute, people, n, round(rapid, 3) AS rapid, round(rapid_of_all, 3) AS of_all
FROM worst_subgroups
WHERE place = 1
ORDER BY rapid DESC, registry, release_id, sensitive_attribute
LIMIT 8;

-- 6. How many people would be found out on at least one attribute?
SELECT registry, release_id, max(n_records) AS people, max(n_any) AS found_out, round(max(share_any), 3) AS share
FROM joint_risk
LEFT SEMI JOIN latest_runs USING (run_id, registry, release_id)
GROUP BY registry, release_id
ORDER BY share DESC, registry, release_id
LIMIT 8;

-- 7. How confident is the attacker about them? Here: the riskiest release, by tenths of the score.
SELECT registry, release_id, attacker, band, band_end, n, n_at_risk, withheld
FROM records_by_band
JOIN (
  SELECT run_id, registry, release_id, sensitive_attribute, worst_attacker AS attacker
  FROM release_figures
  WHERE measure = 'normalized_gain'
  ORDER BY rapid_decisive DESC, registry, release_id, sensitive_attribute
  LIMIT 1
) USING (run_id, registry, release_id, sensitive_attribute, attacker)
WHERE replicate = 1 AND target_type = 'categorical'
ORDER BY band NULLS FIRST;

-- 8. Which answers would be found out?
SELECT registry, release_id, sensitive_attribute, class_label, max(n) AS n, round(max(rapid), 3) AS rapid
FROM risk_classes
LEFT SEMI JOIN latest_runs USING (run_id, registry, release_id)
WHERE scored_on = 'original' AND weighting = 'none'
GROUP BY ALL
ORDER BY rapid DESC, registry, release_id, class_label
LIMIT 8;

-- 9. Is there anything that could not be computed, so that nothing is known of it?
SELECT status, count(*) AS combinations, count(DISTINCT registry, release_id) AS releases, max(reason) AS reason
FROM finished_summary
LEFT SEMI JOIN latest_runs USING (run_id, registry, release_id)
GROUP BY status
ORDER BY status DESC;

-- 10. What waits for a decision?
SELECT registry, release_id, why, days_left
FROM reviews_due
ORDER BY days_left, registry, release_id;
