"""Makes the traps known where this app is installed."""

from acceptance.harness.traps.actions import LocalTrap, Trap

from automation.extend import register

register(Trap)
register(LocalTrap)
