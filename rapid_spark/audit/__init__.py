"""Many registries and releases from one configuration, judged by one policy and compared fairly."""

from .outcome import AuditOutcome
from .runner import audit
from .settings import AuditConfig

__all__ = ["AuditConfig", "AuditOutcome", "audit"]
