"""What is kept for how long, and how it goes: by age, for a person's sake, with a tenant; and how it is taken along."""
