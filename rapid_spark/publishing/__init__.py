"""Figures that may leave the house: small counts withheld, counts rounded, rates from the rounded counts; no Spark.

The tables of a store hold exact figures for the custodian. What is published (`report`, `export`, the dashboard) goes
through here. A count is *small* when it is above 0 and below the limit; the limit is `min_cell_count`, or the rounding
base where that is larger, so that no count that is not 0 is rounded to 0.

- A combination, class or group with few records is withheld; so is a count at risk that is small, and one that leaves
  nobody or few out (n - n_at_risk: then the guess is right for all). That nobody is at risk is told, as 0.
- In `risk_summary` and `risk_curve` a withheld figure is null while `status` is 'ok': there, null means withheld and 0
  means none. Withheld classes and groups have no row at all; their number is told.
- What is withheld among classes or groups must not follow from a total: others are withheld until at least two are,
  with at least the limit at risk and not at risk among them. (Suppression by network flow, `suppression`, has been
  applied to groups before, with counts that are no longer there; this is the same for the stricter limit, line by line.)
- With rounding, every share is of rounded counts, and an interval is widened to the next multiples of the base.
"""

from .audits import COMPARED, WITHHELD
from .columns import PUBLISHED, TABLES
from .rows import COMBINATION
from .rule import Rule
from .tables import Published, protect

__all__ = ["COMBINATION", "COMPARED", "PUBLISHED", "TABLES", "WITHHELD", "Published", "Rule", "protect"]
