"""The scheduler: queues, the output of a step, and the two passes."""
