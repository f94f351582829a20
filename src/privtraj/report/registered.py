"""What the report shows of objects that do not know it: see `privtraj.display`."""

from privtraj.display import register
from privtraj.report.cards import certificate_card, model_card, paths_card, snapshots_card
from privtraj.report.page import write_report

register("card", "Snapshots", snapshots_card)
register("card", "TrajectoryModel", model_card)
register("card", "Certificate", certificate_card)
register("card", "Paths", paths_card)
register("page", "TrajectoryModel", write_report)
