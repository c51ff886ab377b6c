"""Rules: the families of kernels a problem can become, their decisions, limits and expected costs."""

from .base import Cost, Decisions, Rule, Value
from .rulesets import RULES, candidates, cost, default, legal, rules_for

__all__ = ["RULES", "Cost", "Decisions", "Rule", "Value", "candidates", "cost", "default", "legal", "rules_for"]
