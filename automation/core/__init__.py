"""The pure heart of the engine: decisions as values, without Django, clock, chance or I/O."""
