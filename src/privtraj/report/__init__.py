"""Reports: what a model says, drawn, from released quantities alone."""
