"""What a parent agent's model sees: a tool over one provider, and background jobs."""
