"""What an agent asks and tells: sessions, orders, facts, output, objects, heartbeats."""
