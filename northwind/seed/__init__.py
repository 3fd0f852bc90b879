"""What the demo begins with: three tenants with people, records, connections and rules that are switched on."""
