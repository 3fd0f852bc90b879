"""The noisy-neighbour experiment: what one tenant's load and loops do to the others, on the real product."""
