"""What happened in this process, counted for Prometheus. Each app has a registry of its own.

Every label has few values: codes and templates of ours, never a name, an id or a text.
"""

import platform

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, generate_latest
from prometheus_client.registry import Collector

from app.schemas.reviews import ReviewOut

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0)


class Metrics:
    """The counts of one running service."""

    def __init__(self, version: str = "unknown") -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        info = Info("bouncer_build", "The running version.", registry=registry)
        info.info({"version": version, "python": platform.python_version()})
        self._requests = Counter(
            "bouncer_requests", "Requests answered.", ("method", "route", "status"), registry=registry
        )
        self._request_seconds = Histogram(
            "bouncer_request_seconds", "Time to answer a request.", ("route",), buckets=SECONDS, registry=registry
        )
        self._reviews = Counter("bouncer_reviews", "Texts judged.", ("verdict", "reviewer"), registry=registry)
        self._reasons = Counter("bouncer_review_reasons", "Reasons of refusals.", ("reason",), registry=registry)
        self._faults = Counter("bouncer_review_faults", "Why nobody judged texts.", ("fault",), registry=registry)
        self._review_seconds = Histogram(
            "bouncer_review_seconds",
            "Time from a call's arrival to its decision.",
            ("reviewer",),
            buckets=SECONDS,
            registry=registry,
        )
        self.in_flight = Gauge("bouncer_reviews_in_flight", "Calls being judged now.", registry=registry)
        self.circuit_open = Gauge(
            "bouncer_circuit_open", "Whether the failing model is left alone for a while.", registry=registry
        )
        self._model_calls = Counter(
            "bouncer_model_calls", "Texts that the model was asked about.", ("outcome",), registry=registry
        )
        self._model_spared = Counter(
            "bouncer_model_spared", "Texts decided without a question to the model.", ("shortcut",), registry=registry
        )
        self._model_attempts = Counter("bouncer_model_attempts", "Requests to the model's server.", registry=registry)
        self._model_tokens = Counter("bouncer_model_tokens", "Tokens used.", ("kind",), registry=registry)
        self._model_cost = Counter("bouncer_model_cost_microdollars", "What the model cost.", registry=registry)
        self._database_errors = Counter(
            "bouncer_database_errors", "Statements that the database refused or lost.", ("kind",), registry=registry
        )

    def add(self, collector: Collector) -> None:
        """Show what a collector finds when it is asked."""
        self.registry.register(collector)

    def page(self) -> bytes:
        """All of it, in Prometheus' text format."""
        return generate_latest(self.registry)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, status).inc()
        self._request_seconds.labels(route).observe(seconds)

    def reviewed(self, review: ReviewOut) -> None:
        """Count a judged text."""
        self._reviews.labels(review.verdict.value, review.reviewer).inc()
        self._review_seconds.labels(review.reviewer).observe(
            max(0.0, (review.decided_at - review.created_at).total_seconds())
        )
        for reason in review.reasons:
            self._reasons.labels(reason.value).inc()
        if review.shortcut is not None:
            self._model_spared.labels(review.shortcut.value).inc()
        if review.fault is not None:
            self._faults.labels(review.fault.value).inc()

    def paid(self, review: ReviewOut) -> None:
        """Count what the model took for a text, if it was asked."""
        usage = review.usage
        if not usage.attempts:
            return
        self._model_calls.labels(review.fault.value if review.fault else "answered").inc()
        self._model_attempts.inc(usage.attempts)
        self._model_cost.inc(usage.cost_microdollars)
        for kind in ("input", "cache_write", "cache_read", "output"):
            self._model_tokens.labels(kind).inc(getattr(usage, f"{kind}_tokens"))

    def database_failed(self, kind: str) -> None:
        """Count an error of the database; ``kind`` is the driver's class of errors."""
        self._database_errors.labels(kind).inc()
