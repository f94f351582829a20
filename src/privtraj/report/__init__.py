"""Reports: what a model says, drawn. Everything here is made from released quantities alone."""
