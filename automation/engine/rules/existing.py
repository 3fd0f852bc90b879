"""Counts the records that a rule concerns already: publishing leaves them alone, and says how many they are."""

from dataclasses import dataclass

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from automation.catalog import registry
from automation.catalog.automatable import Automatable
from automation.core.moments import Moment
from automation.core.spec import RuleSpec
from automation.definitions.standing import standing
from automation.engine.patience import TookTooLong, at_most
from automation.store import clock
from tenants.context import current_tenant
from tenants.models import Tenant

COUNTED = 10_000
SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Existing:
    """How many records of `model` a rule concerns as they stand: from `least` to `most`, each counted to `COUNTED`.

    Both are None where counting took too long. `unknown` are the ids of the comparisons that only an event answers;
    without any, `least` is `most`. `new_only`: the rule listens to new records alone.
    """

    model: str
    least: int | None
    most: int | None
    unknown: tuple[str, ...] = ()
    new_only: bool = False

    def sentences(self, rate: float | None = None) -> list[str]:
        """What to tell people before they publish; with a rate a minute they are run for, else left alone."""
        return [self._number(), self._future() if rate is None else self._run(rate)]

    def _number(self) -> str:
        if self.least is None or self.most is None:
            return _("The records that it concerns already are too many to be counted here.")
        if self.least > COUNTED:
            return _("It concerns more than %(n)d records already.") % {"n": COUNTED}
        if self.most > COUNTED:
            return _("It concerns from %(least)d to more than %(most)d records already, by how they came to be so.") % {
                "least": self.least,
                "most": COUNTED,
            }
        if self.least != self.most:
            return _("It concerns from %(least)d to %(most)d records already, by how they came to be so.") % {
                "least": self.least,
                "most": self.most,
            }
        return ngettext("It concerns %(n)d record already.", "It concerns %(n)d records already.", self.most) % {
            "n": self.most
        }

    def _run(self, rate: float) -> str:
        if self.unknown:
            return _("Those that it surely concerns are run for at %(rate)g a minute.") % {"rate": rate}
        return _("They are run for at %(rate)g a minute.") % {"rate": rate}

    def _future(self) -> str:
        if self.new_only:
            return _("They are left alone: it runs for new records only.")
        return _("They are left alone until they change.")


def existing(spec: RuleSpec) -> Existing | None:
    """The current tenant's records that a rule concerns already; None where it isn't started by changes of records."""
    entry = registry.models.get(spec.trigger.model)
    if spec.trigger.kind != "record_changed" or spec.trigger.on == {"deleted"} or entry is None:
        return None
    tenant = Tenant.objects.get(pk=current_tenant())
    found = standing(spec.condition, entry, Moment(now=clock.now(), zone=tenant.zone))
    new_only = spec.trigger.on == {"created"}
    try:
        with at_most(SECONDS):
            least = _count(entry, found.least)
            most = _count(entry, found.most) if found.unknown else least
    except TookTooLong:
        return Existing(entry.name, None, None, found.unknown, new_only)
    return Existing(entry.name, least, most, found.unknown, new_only)


def _count(entry: Automatable, wanted: Q) -> int:
    return entry.model._default_manager.filter(wanted).order_by().values("pk")[: COUNTED + 1].count()
