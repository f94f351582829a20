from .cells import jensen_shannon as jensen_shannon
from .classifier import two_sample_auc as two_sample_auc
from .copies import (
    Memorisation as Memorisation,
)
from .copies import (
    memorisation as memorisation,
)
from .copies import (
    nearest_distances as nearest_distances,
)
from .copies import (
    path_memorisation as path_memorisation,
)
from .energy import energy_distance as energy_distance
from .evaluation import (
    Evaluation as Evaluation,
)
from .evaluation import (
    evaluate as evaluate,
)
from .held_out import (
    HeldOut as HeldOut,
)
from .held_out import (
    displacement_interpolation as displacement_interpolation,
)
from .held_out import (
    held_out_w2 as held_out_w2,
)
from .held_out import (
    leave_one_out as leave_one_out,
)
from .mobility import (
    density_jsd as density_jsd,
)
from .mobility import (
    hotspot_ndcg as hotspot_ndcg,
)
from .mobility import (
    kendall_tau as kendall_tau,
)
from .mobility import (
    range_query_error as range_query_error,
)
from .path_space import (
    PathScore as PathScore,
)
from .path_space import (
    path_score as path_score,
)
from .path_space import (
    path_wasserstein2 as path_wasserstein2,
)
from .path_space import (
    randomly_coupled as randomly_coupled,
)
from .people import (
    Worth as Worth,
)
from .people import (
    real_people_error as real_people_error,
)
from .people import (
    worth as worth,
)
from .people import (
    worth_interval as worth_interval,
)
from .sliced import sliced_wasserstein2 as sliced_wasserstein2
from .table import (
    Score as Score,
)
from .table import (
    cloud_scores as cloud_scores,
)
from .table import (
    path_scores as path_scores,
)
from .transport import (
    average_squared_w2 as average_squared_w2,
)
from .transport import (
    squared_w2_per_time as squared_w2_per_time,
)
from .transport import (
    squared_wasserstein2 as squared_wasserstein2,
)
from .transport import (
    wasserstein1 as wasserstein1,
)
from .transport import (
    wasserstein2 as wasserstein2,
)
from .trips import (
    diameter_jsd as diameter_jsd,
)
from .trips import (
    length_jsd as length_jsd,
)
from .trips import (
    pattern_f1 as pattern_f1,
)
from .trips import (
    trip_jsd as trip_jsd,
)
