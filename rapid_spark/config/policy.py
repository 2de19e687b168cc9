"""The limits a release is held to, for each audience; what they are compared with is in `rapid_spark.policy`."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from pydantic import Field, model_validator

from .base import Model, Name, suggest

Rate = Annotated[float, Field(ge=0, le=1)]
Difference = Annotated[float, Field(ge=-1, le=1)]


class Limit(Model):
    """A figure above `fail` fails, one above `review` is for a person to look at. A plain number is `fail`."""

    fail: Difference | None = None
    review: Difference | None = None

    @model_validator(mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        return {"fail": value} if isinstance(value, (int, float)) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _ordered(self) -> Limit:
        if self.fail is None and self.review is None:
            raise ValueError("give fail, review, or both")
        if self.fail is not None and self.review is not None and self.review > self.fail:
            raise ValueError(f"review {self.review:g} is above fail {self.fail:g}: it is the earlier of the two")
        return self


class Quality(Model):
    """What the best attacker of the suite must reach for a low rate to mean anything."""

    auc: Annotated[float, Field(ge=0, lt=1)] | None = Field(None, description="of a categorical attribute; 0.5 is guessing")
    accuracy_gain: Difference | None = Field(None, description="accuracy less that of always the most frequent class")
    r2: Annotated[float, Field(ge=-1, lt=1)] | None = Field(None, description="of a continuous attribute; 0 is guessing")


class Limits(Model):
    """Rules; one that is left out is not applied. All rates and differences are shares."""

    rapid_max: Limit | None = Field(None, description="largest over attackers of the mean over copies")
    rapid_pooled: Limit | None = Field(None, description="attacker who trains on all copies together")
    interval_upper: Limit | None = Field(None, description="upper end of the interval, largest over attackers")
    excess: Limit | None = Field(None, description="rate less what chance gives, largest over attackers")
    sensitive_levels_rate: Limit | None = Field(None, description="rate over the levels that would hurt if known")
    holdout_difference: Limit | None = Field(None, description="rate less that of people not in the data")
    subgroup_rapid: Limit | None = Field(None, description="rate of any subgroup")
    increase_over_previous: Limit | None = Field(None, description="rate less that of the registry's release before")
    min_n: int | None = Field(None, ge=1, description="fewest records with a defined outcome")
    attacker_quality: Quality | None = Field(None, description="least quality of the best attacker")


class Context(Model):
    """Who is to have the release, and what for."""

    audience: Name | None = Field(None, description="one of policy.audiences, e.g. public or named_recipients")
    purpose: Name | None = None


class Policy(Model):
    """Limits for everybody, others in their place for an audience, and within it for an attribute."""

    context: Context = Context()
    limits: Limits = Limits()
    audiences: dict[str, Limits] = Field(default_factory=dict, description="limits in place of the common ones")
    attributes: dict[str, Limits] = Field(
        default_factory=dict, description="limits of a sensitive attribute, in place of those of the audience"
    )
    approvals: int = Field(1, ge=1, le=9, description="different people who must approve a release (rapid-spark decide)")
    valid_until: date | None = Field(None, description="last day on which this policy, and what it clears, holds")

    @model_validator(mode="after")
    def _known(self) -> Policy:
        audience = self.context.audience
        if self.audiences and audience is None:
            raise ValueError(f"context.audience: name one of {', '.join(self.audiences)}")
        if audience is not None and self.audiences and audience not in self.audiences:
            near, known = suggest(audience, self.audiences), ", ".join(self.audiences)
            raise ValueError(f"context.audience: there are no limits for {audience!r}.{near} Known: {known}")
        chosen = [self.limits, *self.audiences.values(), *self.attributes.values()]
        if not any(rule is not None for limits in chosen for rule in dict(limits).values()) and self.valid_until is None:
            raise ValueError("a policy needs at least one limit, e.g. limits: {rapid_max: 0.3}")
        return self

    def asks_for(self, rule: str) -> bool:
        """Whether any limits set this rule."""
        every = [self.limits, *self.audiences.values(), *self.attributes.values()]
        return any(getattr(limits, rule) is not None for limits in every)

    def limits_for(self, attribute: str) -> Limits:
        """The limits of an attribute: its own, else those of the audience, else the common ones, rule by rule."""
        layers = [self.limits, self.audiences.get(self.context.audience or ""), self.attributes.get(attribute)]
        rules: dict[str, Any] = {}
        for layer in layers:
            rules |= {name: rule for name, rule in dict(layer or {}).items() if rule is not None}
        return Limits(**rules)
