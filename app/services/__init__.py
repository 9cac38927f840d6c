"""What the web app does: keeps sessions, moves through time, acts. Knows the engine, no HTTP and no words."""
