"""What people do to runs, rules and tenants while they work: each verb guarded, audited and refused where senseless."""


class Refused(Exception):
    """A verb that makes no sense here and now; the text is a sentence for the person who asked."""
