"""How good a release is, in people per time: expected of a plan, estimated of a released model.

`worth n people` is defined in `metrics.people`. A plan fits simulated crowds and looks how far off
the fits are; here the released model is the crowd, so that nothing is spent and nothing is read.
"""
