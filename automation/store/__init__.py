"""The only writer of states: claims, timers, guarded transitions, and waves of them."""
